"""Status pages: made in the console, published by people, read by strangers without a database."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from deploy.configuration import configured
from frontend.views.status_pages import bodies
from frontend.views.status_pages.bodies import BODIES
from incidents import commands
from incidents.api.config.views import exported
from incidents.domain.incident.commands import Report
from incidents.domain.incident.timeline import sentence
from incidents.domain.permissions import ForbiddenError
from incidents.domain.status_pages import Publish
from incidents.people.commands import set_member
from incidents.queries import get, incident_events
from incidents.status_pages import commands as status
from incidents.status_pages.mail import CONFIRMED_WITHIN, MOST_REQUESTS, send_waiting, tidy
from incidents.status_pages.models import StatusEmail, StatusNotice, StatusPage, StatusSubscriber
from incidents.status_pages.projection import check, rebuild
from incidents.teams.models import Service, Team
from ingest.api import keys
from ingest.commands import LogIntegrityError
from ingest.queries import Context, now_utc, read_stream
from ingest.queries import configured as logged
from tests.integration.incidents.notifications.cases import MailSink
from tests.integration.incidents.webhooks.cases import deliver, hook
from tests.integration.sinks import http_sink

pytestmark = pytest.mark.usefixtures("log_database")
ALICE = Context("user:alice")
SERVICES = [
    {"key": "storage", "name": "Block storage", "group": "Storage", "covers": ["storage-api", "disk/*"]},
    {"key": "network", "name": "Network", "group": "", "covers": ["tor/*"]},
]
DOWN = Publish("investigating", "We are investigating.", {"storage": "partial_outage"}, title="Slow volumes")


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_some(self) -> None:
        self.now += 2 * bodies.FRESH


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    it = Clock()
    monkeypatch.setattr(BODIES, "clock", it)
    BODIES.clear()
    yield it
    BODIES.clear()


@pytest.fixture
def staff() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("alice", password="x" * 12, is_staff=True))
    return client


@pytest.fixture
def cloud() -> StatusPage:
    return StatusPage.objects.create(slug="cloud", name="Example Cloud", public=True, services=SERVICES)


def opened(title: str = "Rack 12 loses packets", component: str = "disk/d1") -> int:
    report = Report(title, component=component, severity="error")
    return commands.open_incident(report, Context("key:mon")).incident.number


def form(**fields: Any) -> dict[str, Any]:
    return {
        "name": "Example Cloud",
        "slug": "cloud",
        "description": "",
        "team": "",
        "public": "true",
        "service_key": ["", "", ""],
        "service_name": ["Block storage", "Network", ""],
        "service_group": ["Storage", "", ""],
        "service_covers": ["disk/*", "tor/*", ""],
    } | fields


# Settings
# ----------------------------------------------------------------------------------------------------------
def test_a_page_is_made_changed_removed_and_put_back_in_the_console(staff: Client) -> None:
    assert "No status pages." in staff.get("/settings/status_pages").content.decode()
    assert staff.post("/settings/status_pages", form()).status_code == 302
    row = StatusPage.objects.get()
    assert [(one.key, one.name, one.covers) for one in row.entries] == [
        ("block-storage", "Block storage", ("disk/*",)),
        ("network", "Network", ("tor/*",)),
    ]
    assert "Block storage" in staff.get("/settings/status_pages?edit=cloud").content.decode()
    renamed = form(edited="cloud", service_key=["block-storage", "network", ""])
    renamed["service_name"] = ["Volumes", "", ""]
    renamed["service_covers"] = ["disk/*", "", ""]
    assert staff.post("/settings/status_pages", renamed).status_code == 302
    row.refresh_from_db()
    assert [(one.key, one.name) for one in row.entries] == [("block-storage", "Volumes")]
    staff.post("/settings/status_pages/cloud/remove")
    assert not StatusPage.objects.exists()
    staff.post("/settings/restore", {"kind": "status_page", "key": "cloud"})
    assert StatusPage.objects.get().version > row.version


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("slug", "", "may not be blank"),
        ("slug", "not a slug", "letters, numbers, underscores or hyphens"),
        ("service_name", ["A", "A", ""], "twice"),
        ("service_name", ["", "B", ""], "must not be empty"),
        ("service_covers", ["no-such-service", "", ""], "neither a service"),
    ],
)
def test_a_bad_page_is_refused_with_what_was_typed(staff: Client, field: str, value: Any, why: str) -> None:
    answer = staff.post("/settings/status_pages", form(**{field: value}))
    text = answer.content.decode()
    assert answer.status_code == 400
    assert why in text
    assert 'value="Example Cloud"' in text
    assert not StatusPage.objects.exists()


def test_only_staff_and_managers_of_its_team_make_a_page() -> None:
    storage = Team.objects.get(slug="storage")
    bob, charlie = User.objects.create_user("bob"), User.objects.create_user("charlie")
    set_member(storage, bob, "manager", Context("system:test"))
    set_member(storage, charlie, "responder", Context("system:test"))
    client = Client()
    client.force_login(charlie)
    assert client.post("/settings/status_pages", form(team="storage")).status_code == 403
    client.force_login(bob)
    assert client.post("/settings/status_pages", form()).status_code == 400
    assert client.post("/settings/status_pages", form(team="storage")).status_code == 302


def test_a_page_is_in_the_configuration_file_and_keeps_its_services_from_removal(
    cloud: StatusPage, staff: Client
) -> None:
    Service.objects.create(slug="storage-api", name="Storage API")
    filed = exported(configured())["status_pages"]
    assert [one["slug"] for one in filed] == [cloud.slug]
    assert filed[0]["services"] == SERVICES
    page = staff.post("/settings/services/storage-api/remove", follow=True).content.decode()
    assert "the status page cloud" in page


# Publishing
# ----------------------------------------------------------------------------------------------------------
def test_from_an_incident_an_update_is_drafted_previewed_and_published(
    cloud: StatusPage, staff: Client
) -> None:
    number = opened("disk/d1 is slow since #12")
    assert f"/status_updates/new?incident={number}" in staff.get(f"/incidents/{number}").content.decode()
    address = f"/status_updates/new?incident={number}"
    draft = staff.get(address).content.decode()
    assert 'value="Problem with Block storage"' in draft
    assert "We are investigating a problem with Block storage." in draft
    given = {
        "page": "cloud",
        "incident": number,
        "title": "Volumes of alice are slow",
        "status": "identified",
        "text": "It is disk/d1.",
        "state-storage": "partial_outage",
        "state-network": "operational",
    }
    preview = staff.post(address, {**given, "step": "preview"}).content.decode()
    assert "<code>disk/d1</code>" in preview
    assert "<code>alice</code>" in preview
    assert not StatusNotice.objects.exists()
    staff.post(address, {**given, "title": "Slow volumes", "text": "We know why.", "step": "publish"})
    row = StatusNotice.objects.get()
    assert (row.title, row.updates[0]["services"]) == ("Slow volumes", {"storage": "partial_outage"})
    (event,) = read_stream(f"status_notice/{row.pk}")
    assert event.actor == "user:alice"
    assert "Already published" in staff.get(address).content.decode()
    staff.post(
        f"/status_updates/{row.pk}",
        {"title": row.title, "status": "resolved", "text": "Over.", "step": "publish"},
    )
    row.refresh_from_db()
    assert row.ended_at is not None
    assert "Resolved" in staff.get("/status_updates").content.decode()
    staff.post(f"/status_updates/{row.pk}/edit", {"number": "2", "text": "It is over."})
    staff.post(f"/status_updates/{row.pk}/withdraw")
    row.refresh_from_db()
    assert (row.updates[1]["text"], row.withdrawn) == ("It is over.", True)
    del cloud


def test_what_cannot_be_published_is_refused_and_what_was_typed_stays(
    cloud: StatusPage, staff: Client
) -> None:
    given = {
        "page": cloud.slug,
        "title": "Kept title",
        "status": "sleeping",
        "text": "Hm.",
        "step": "publish",
    }
    answer = staff.post("/status_updates/new", given)
    assert answer.status_code == 400
    assert "Kept title" in answer.content.decode()
    assert "Status must be one of" in answer.content.decode()
    assert not StatusNotice.objects.exists()


def test_responders_of_the_team_publish_and_others_do_not(cloud: StatusPage) -> None:
    cloud.team = Team.objects.get(slug="storage")
    cloud.save()
    bob, charlie = User.objects.create_user("bob"), User.objects.create_user("charlie")
    set_member(cloud.team, bob, "responder", Context("system:test"))
    set_member(Team.objects.get(slug="network"), charlie, "responder", Context("system:test"))
    with pytest.raises(ForbiddenError):
        status.open_notice("cloud", DOWN, Context("user:charlie"))
    client = Client()
    client.force_login(charlie)
    given = {"page": "cloud", "title": "A", "status": "investigating", "text": "B", "step": "publish"}
    assert client.post("/status_updates/new", given).status_code == 403
    assert not StatusNotice.objects.exists()
    assert status.open_notice("cloud", DOWN, Context("user:bob")).title == "Slow volumes"


def test_over_http_a_notice_is_published_updated_corrected_and_withdrawn(cloud: StatusPage) -> None:
    number = opened()
    client = Client(
        headers={"Authorization": f"Bearer {keys.create('bot', ['incidents:read', 'incidents:write'])}"}
    )
    base = f"/api/v1/status_pages/{cloud.slug}/notices"

    def send(method: str, to: str, code: int, **body: Any) -> Any:
        answer = getattr(client, method)(to, body, content_type="application/json")
        assert answer.status_code == code, answer.content
        return answer.json()

    draft = client.get(f"/api/v1/incidents/{number}/status_draft", {"page": "cloud"}).json()
    assert draft["services"] == {"storage": "partial_outage"}
    assert "page" in client.get(f"/api/v1/incidents/{number}/status_draft").json()["errors"]
    made = send("post", base, 201, **draft, incident=str(number))
    one = f"{base}/{made['id']}"
    assert (made["incident"], made["status"]) == (number, "investigating")
    assert (
        "services"
        in send("post", f"{one}/updates", 400, status="identified", text="A", services={"x": "operational"})[
            "errors"
        ]
    )
    after = send("post", f"{one}/updates", 200, status="monitoring", text="Better.")
    assert [update["number"] for update in after["updates"]] == [2, 1]
    assert send("patch", f"{one}/updates/2", 200, text="Good.")["updates"][0]["edited_at"]
    assert send("patch", f"{one}/updates/9", 409, text="Good.")
    assert client.delete(one).json()["withdrawn"]
    assert send("post", f"{one}/updates", 409, status="resolved", text="Over.")
    assert [row["withdrawn"] for row in client.get(base).json()["results"]] == [True]
    assert send("post", "/api/v1/status_pages/none/notices", 404, status="resolved", text="Over.", title="A")


def test_notices_are_compared_with_the_log_and_written_once_more(cloud: StatusPage) -> None:
    notice = status.open_notice(cloud.slug, DOWN, ALICE)
    status.update_notice(cloud.slug, notice.id, Publish("resolved", "Over.", {}), ALICE)
    status.edit_update(cloud.slug, notice.id, 1, "We look.", ALICE)
    right = StatusNotice.objects.values().get()
    assert check() == 1
    assert not rebuild()
    StatusNotice.objects.update(title="Forged")
    with pytest.raises(LogIntegrityError):
        check()
    assert rebuild()
    assert StatusNotice.objects.values().get() == right
    StatusNotice.objects.all().delete()
    assert rebuild()
    assert StatusNotice.objects.values().get() == right


def test_all_that_was_published_about_an_incident_is_on_its_timeline(cloud: StatusPage) -> None:
    about = get(str(opened())).incident.id
    first = Publish("identified", "We know.", {"storage": "major_outage"}, "incident", "Slow volumes", about)
    notice = status.open_notice(cloud.slug, first, ALICE)
    commands.resolve(about, "none", "", Context("user:bob"))
    status.update_notice(cloud.slug, notice.id, Publish("resolved", "Over.", {}), ALICE)
    status.edit_update(cloud.slug, notice.id, 1, "We know it.", ALICE)
    status.edit_update(cloud.slug, notice.id, 1, "We know it.", ALICE)
    status.withdraw_notice(cloud.slug, notice.id, ALICE)
    found = [event for event in incident_events(about) if event.type == "incident.status_published"]
    assert [(event.actor, sentence(event)) for event in found] == [
        ("user:alice", "alice published update 1 on the status page Example Cloud (Identified): We know."),
        ("user:alice", "alice published update 2 on the status page Example Cloud (Resolved): Over."),
        ("user:alice", "alice corrected update 1 on the status page Example Cloud (Identified): We know it."),
        ("user:alice", "alice withdrew the notice from the status page Example Cloud"),
    ]
    assert get(about).incident.state == "resolved"


def test_days_before_the_page_was_made_are_shown_without_data(cloud: StatusPage, clock: Clock) -> None:
    shown = Client().get("/status/cloud")
    assert b'class="no_data"' in shown.content
    assert b"Today: operational; no data for the 89 days before" in shown.content
    found = Client().get("/status/cloud.json").json()["services"][0]["days"]
    assert [one["state"] for one in found[-2:]] == ["no_data", "operational"]
    StatusPage.objects.filter(pk=cloud.pk).update(made_at=now_utc() - timedelta(days=100))
    BODIES.clear()
    clock.pass_some()
    assert b"no_data" not in Client().get("/status/cloud").content


# Reading
# ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("rest", ["", ".json", "/feed"])
def test_a_hit_reads_no_database_and_an_update_is_there_when_seconds_have_passed(
    cloud: StatusPage, clock: Clock, rest: str
) -> None:
    stranger, address = Client(), f"/status/{cloud.slug}{rest}"
    first = stranger.get(address)
    assert first.status_code == 200
    with CaptureQueriesContext(
        connection,
    ) as queries:
        second = stranger.get(address)
        unchanged = stranger.get(address, headers={"If-None-Match": first["ETag"]})
    assert len(queries) == 0
    assert (second.content, second["ETag"]) == (first.content, first["ETag"])
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged["Cache-Control"].startswith("public, max-age=5")
    assert "Set-Cookie" not in second
    status.open_notice(cloud.slug, DOWN, ALICE)
    clock.pass_some()
    third = stranger.get(address, headers={"If-None-Match": first["ETag"]})
    assert third.status_code == 200
    assert "Slow volumes" in third.content.decode()


@pytest.mark.parametrize("rest", ["", ".json", "/feed"])
def test_while_the_database_is_away_the_last_bodies_are_served(
    cloud: StatusPage, clock: Clock, rest: str
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("the server closed the connection")

    first = Client().get(f"/status/{cloud.slug}{rest}")
    status.open_notice(cloud.slug, DOWN, ALICE)
    with connection.execute_wrapper(away):
        clock.pass_some()
        during = Client().get(f"/status/{cloud.slug}{rest}")
    assert (during.status_code, during.content) == (200, first.content)
    clock.pass_some()
    assert "Slow volumes" in Client().get(f"/status/{cloud.slug}{rest}").content.decode()


def test_a_page_shows_states_notices_and_history_and_nothing_internal(
    cloud: StatusPage, clock: Clock
) -> None:
    number = opened("disk/d1 is slow")
    about = get(str(number)).incident.id
    command = Publish(
        "identified", "<b>Known</b>.", {"storage": "major_outage"}, "incident", "Slow volumes", about
    )
    status.open_notice(cloud.slug, command, ALICE)
    shown = {rest: Client().get(f"/status/cloud{rest}").content.decode() for rest in ("", ".json", "/feed")}
    page = shown[""]
    for words in ("Major outage", "Block storage", "Slow volumes", "Identified", "&lt;b&gt;Known"):
        assert words in page
    for text in shown.values():
        for internal in ("disk/", "tor/", "storage-api", "alice", f"#{number}", "user:", about):
            assert internal not in text
    found = json.loads(shown[".json"])
    assert found["status"] == {"state": "major_outage", "words": "Major outage"}
    assert found["services"][0]["days"][-1] == {"day": str(datetime.now(UTC).date()), "state": "major_outage"}
    assert {*found["current"][0]} == {"id", "kind", "title", "status", "began_at", "ended_at", "updates"}
    entries = ElementTree.fromstring(shown["/feed"]).findall("{http://www.w3.org/2005/Atom}entry")
    assert [one.findtext("{http://www.w3.org/2005/Atom}title") for one in entries] == [
        "Slow volumes: Identified"
    ]
    (row,) = StatusNotice.objects.all()
    status.update_notice("cloud", str(row.pk), Publish("resolved", "Over.", {}), ALICE)
    clock.pass_some()
    ended = Client().get("/status/cloud").content.decode()
    assert "All services operational" in ended
    assert ended.index("Past incidents") < ended.index("Slow volumes")


def test_an_empty_page_says_so_and_an_unknown_one_is_not_found() -> None:
    StatusPage.objects.create(slug="new", name="New", public=True)
    page = Client().get("/status/new").content.decode()
    assert "No services listed." in page
    assert "No incidents in the last 90 days." in page
    assert Client().get("/status/none").status_code == 404
    assert Client().post("/status/new").status_code == 405


@pytest.mark.parametrize("name", ["Acme", "Acme status", "Acme Status"])
def test_the_title_has_the_word_status_once(name: str) -> None:
    StatusPage.objects.create(slug="acme", name=name, public=True)
    shown = [Client().get(f"/status/acme{rest}").content.decode().lower() for rest in ("", "/feed")]
    assert "<h1>acme status</h1>" in shown[0]
    assert "<title>acme status: " in shown[0]
    assert "<title>acme status</title>" in shown[1]


def test_an_internal_page_is_shown_after_signing_in_only(cloud: StatusPage, staff: Client) -> None:
    cloud.public = False
    cloud.save()
    assert Client().get("/status/cloud")["Location"] == "/accounts/login/?next=/status/cloud"
    assert [Client().get(f"/status/cloud{rest}").status_code for rest in (".json", "/feed")] == [404, 404]
    answer = staff.get("/status/cloud")
    assert (answer.status_code, answer["Cache-Control"]) == (200, "private, no-cache")


def test_a_page_made_private_is_shown_to_no_stranger(cloud: StatusPage, clock: Clock, staff: Client) -> None:
    assert Client().get("/status/cloud").status_code == 200
    assert staff.post("/settings/status_pages", form(edited="cloud", public="false")).status_code == 302
    clock.pass_some()
    assert Client().get("/status/cloud").status_code == 302
    del cloud


# Subscribers
# ----------------------------------------------------------------------------------------------------------
def test_a_webhook_that_names_the_events_gets_the_notice_and_nothing_internal(
    cloud: StatusPage, settings: Settings
) -> None:
    settings.OUTBOUND_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    with http_sink() as sink, http_sink() as other:
        hook(sink.url, types=["status_page.update_published", "status_page.notice_withdrawn"])
        hook(other.url, name="all")
        about = get(str(opened())).incident.id
        command = Publish(
            "identified", "We know.", {"storage": "degraded_performance"}, "incident", "Slow", about
        )
        notice = status.open_notice(cloud.slug, command, ALICE)
        status.update_notice(cloud.slug, notice.id, Publish("resolved", "Over.", {}), ALICE)
        status.withdraw_notice(cloud.slug, notice.id, ALICE)
        deliver(lambda: len(sink.got) >= 3 and len(other.got) >= 1)
        first, second, last = (json.loads(got.body) for got in sink.got)
        assert (first["page"], first["notice"]["status"]) == ("cloud", "identified")
        assert [one["number"] for one in second["notice"]["updates"]] == [2, 1]
        assert (last["type"], last["notice"]) == ("status_page.notice_withdrawn", None)
        for internal in (b"alice", about.encode(), b"disk/"):
            assert not any(internal in got.body for got in sink.got)
        assert not any(b"status_page." in got.body for got in other.got)


def links(mails: MailSink) -> list[str]:
    """Paths of the links of the last mail that carry a token."""
    text = mails.mails[-1].get_content()
    return re.findall(r"https?://[^/\s]+(/status/(?:confirm|unsubscribe)/\S+)", text)


def test_a_reader_subscribes_by_mail_confirms_gets_updates_and_leaves(
    cloud: StatusPage, mails: MailSink
) -> None:
    stranger, given = Client(enforce_csrf_checks=True), {"address": "reader@example.com"}
    assert "/status/cloud/subscribe" in stranger.get("/status/cloud").content.decode()
    assert stranger.post("/status/cloud/subscribe", given).status_code == 200
    assert stranger.post("/status/cloud/subscribe", given).status_code == 200
    assert send_waiting(now_utc()) == 1
    status.open_notice(cloud.slug, DOWN, ALICE)
    assert send_waiting(now_utc()) == 0
    confirm, _ = links(mails)
    assert "Send updates to reader@example.com?" in stranger.get(confirm).content.decode()
    assert StatusSubscriber.objects.get().confirmed_at is None
    assert "Subscribed" in stranger.post(confirm).content.decode()
    (row,) = StatusNotice.objects.all()
    status.update_notice(cloud.slug, str(row.pk), Publish("resolved", "Over.", {}), ALICE)
    assert send_waiting(now_utc()) == 1
    update = mails.mails[-1]
    assert update["Subject"] == "[Example Cloud] Slow volumes: Resolved"
    assert update["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert "alice" not in str(update).lower()
    (leave,) = links(mails)
    assert StatusSubscriber.objects.exists()
    stranger.get(leave)
    assert StatusSubscriber.objects.exists()
    assert "was deleted" in stranger.post(leave).content.decode()
    assert not StatusSubscriber.objects.exists()
    assert stranger.post(confirm).status_code == 410
    (refused,) = logged("status_subscriber", "confirmation")
    assert refused.body["after"]["outcome"] == "refused: subscription deleted"


def test_a_wrong_address_and_a_forged_link_are_refused(cloud: StatusPage, mails: MailSink) -> None:
    del mails
    stranger = Client()
    answer = stranger.post("/status/cloud/subscribe", {"address": "no address"})
    assert answer.status_code == 400
    assert "is not an e-mail address" in answer.content.decode()
    forged = signing.dumps([cloud.slug, "reader@example.com"], salt="another")
    for verb in ("confirm", "unsubscribe"):
        assert stranger.get(f"/status/{verb}/{forged}").status_code == 410
        assert stranger.post(f"/status/{verb}/{forged}").status_code == 410
    for link in ("confirmation", "end of a subscription"):
        assert [event.body["after"]["outcome"] for event in logged("status_subscriber", link)] == [
            "refused: link forged or expired"
        ]
    assert stranger.post("/status/none/subscribe", {"address": "a@example.com"}).status_code == 404
    cloud.public = False
    cloud.save()
    BODIES.clear()
    assert stranger.post("/status/cloud/subscribe", {"address": "a@example.com"}).status_code == 404
    assert not StatusSubscriber.objects.exists()


def test_many_requests_for_a_page_are_refused_and_old_ones_are_deleted(
    cloud: StatusPage, mails: MailSink
) -> None:
    del mails
    now = now_utc()
    for place in range(MOST_REQUESTS):
        StatusSubscriber.objects.create(page=cloud.slug, address=f"a{place}@example.com", requested_at=now)
    answer = Client().post("/status/cloud/subscribe", {"address": "reader@example.com"})
    assert answer.status_code == 429
    tidy(now)
    assert StatusSubscriber.objects.count() == MOST_REQUESTS
    tidy(now + 2 * CONFIRMED_WITHIN)
    assert not StatusSubscriber.objects.exists()


def test_a_mail_that_is_refused_for_a_while_is_sent_later_and_one_refused_for_good_is_not(
    cloud: StatusPage, mails: MailSink
) -> None:
    now = now_utc()
    for name in ("a", "b"):
        StatusSubscriber.objects.create(
            page=cloud.slug, address=f"{name}@example.com", requested_at=now, confirmed_at=now
        )
    mails.answers = ["451 later", "550 no such mailbox"]
    status.open_notice(cloud.slug, DOWN, ALICE)
    now = now_utc()
    assert send_waiting(now) == 2
    assert mails.mails == []
    assert send_waiting(now) == 0
    assert send_waiting(now + timedelta(minutes=2)) == 1
    assert [mail["To"] for mail in mails.mails] == ["a@example.com"]
    assert sorted(StatusEmail.objects.values_list("state", flat=True)) == ["refused", "sent"]


def test_staff_lists_and_removes_subscribers_and_no_address_is_in_the_log(cloud: StatusPage) -> None:
    row = StatusSubscriber.objects.create(
        page=cloud.slug, address="reader@example.com", requested_at=now_utc()
    )
    client = Client(headers={"Authorization": f"Bearer {keys.create('bot', ['admin'])}"})
    base = f"/api/v1/status_pages/{cloud.slug}/subscribers"
    assert [one["address"] for one in client.get(base).json()["results"]] == ["reader@example.com"]
    assert client.get(base, {"after": row.pk}).json()["results"] == []
    assert client.get(base, {"after": "x"}).status_code == 400
    assert client.delete(f"{base}/{row.pk}").status_code == 204
    assert client.delete(f"{base}/{row.pk}").status_code == 404
    (event,) = logged("status_subscriber", f"cloud/{row.pk}")
    assert "reader" not in str(event.body)
    reading = Client(headers={"Authorization": f"Bearer {keys.create('eye', ['incidents:read'])}"})
    assert reading.get(base).status_code == 403
