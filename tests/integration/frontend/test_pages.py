"""The console's pages over a real database: who sees them, what they list, what they refuse."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from analyzers.queries import Schedule
from incidents import commands, queries
from incidents.commands import Report
from ingest.queries import Context

pytestmark = pytest.mark.usefixtures("log_database")
BOB = Context("user:bob")
PAGES = (
    "inbox",
    "components",
    "grid",
    "runs",
    "analyzers",
    "schedules",
    "reports",
    "silences",
    "teams",
    "routes",
    "services",
    "integrations",
    "settings",
    "docs",
)


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    return signed_in("alice", is_staff=True)


def signed_in(name: str, **fields: Any) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username=name, **fields))
    return client


def opened(title: str = "Rack 12 loses packets", **fields: Any) -> int:
    return commands.open_incident(Report(title, **fields), BOB).incident.number


def id_of(number: int) -> str:
    return queries.get(str(number)).incident.id


def state(number: int) -> str:
    return queries.get(str(number)).incident.state


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_for_those_who_are_signed_in(name: str) -> None:
    assert Client().get(reverse(name)).headers["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_answers_under_a_policy_without_inline_anything(alice: Client, name: str) -> None:
    response = alice.get(reverse(name))
    body = response.content.decode()
    assert response.status_code == 200
    assert "unsafe" not in response.headers["Content-Security-Policy"]
    assert " style=" not in body
    assert "<style" not in body


def test_an_empty_inbox_teaches_what_to_send(alice: Client) -> None:
    body = alice.get("/").content.decode()
    assert "curl -X POST http://testserver/api/v1/incidents" in body


def test_open_tickets_come_before_those_in_work(alice: Client) -> None:
    working = opened("In work", severity="critical")
    opened("Waits", severity="info")
    commands.acknowledge(id_of(working), BOB)
    body = alice.get("/").content.decode()
    assert body.index("Waits") < body.index("In work</a>")


def test_the_inbox_is_filtered_by_team_severity_and_text(alice: Client) -> None:
    opened("Disk is slow", component="disk/d1", severity="error")
    opened("Disk is full", component="disk/d2", severity="info")
    body = alice.get("/?team=storage&severity=error&q=disk").content.decode()
    assert "Disk is slow" in body
    assert "Disk is full" not in body


def test_every_ticket_is_on_exactly_one_page(alice: Client) -> None:
    numbers = {opened(f"Incident {place}") for place in range(60)}
    for number in sorted(numbers)[::3]:
        commands.acknowledge(id_of(number), BOB)
    address: str | None = ""
    seen: list[int] = []
    while address is not None:
        response = alice.get(f"/{address}")
        seen += [
            ticket.incident.number for group in response.context["groups"] for ticket, _ in group.incidents
        ]
        address = response.context["next"]
    assert sorted(seen) == sorted(numbers)


@pytest.mark.parametrize(
    "query", ["tab=nope", "order=nope", "cursor=9:x", "cursor=0:x", "as_of=nope", "severity=bad"]
)
def test_an_address_that_makes_no_sense_is_a_400_that_says_what(alice: Client, query: str) -> None:
    opened()
    response = alice.get(f"/?{query}")
    assert response.status_code == 400
    assert query.partition("=")[0] in response.content.decode()


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("/incidents/999", "There is no incident 999."),
        ("/reports/what-if/nothing", "No calculator nothing."),
        ("/on-call/network-primary", "There is no schedule network-primary."),
        ("/nowhere/at-all", "No page at this address: <code>/nowhere/at-all</code>"),
    ],
)
def test_an_address_of_nothing_names_what_it_was_and_offers_search(
    alice: Client, address: str, told: str
) -> None:
    response = alice.get(address)
    assert response.status_code == 404
    body = response.content.decode()
    assert told in body
    assert ".." not in body.partition("<h1>")[2].partition("</div>")[0]
    assert 'name="search"' in body


def test_a_ticket_that_is_not_there_is_a_friendly_404(alice: Client) -> None:
    response = alice.get("/incidents/999")
    assert response.status_code == 404
    assert "Page not found" in response.content.decode()
    assert '<nav aria-label="Main">' in response.content.decode()
    number = opened()
    early = alice.get(f"/incidents/{number}?as_of=2020-01-01T00:00:00Z").content.decode()
    assert f"Incident {number} was not open yet at that time." in early


def test_a_tickets_text_is_never_markup(alice: Client) -> None:
    number = opened("<script>alert(1)</script>", description="<img src=x onerror=alert(1)>")
    commands.comment(id_of(number), "<b>bold</b>", BOB)
    body = alice.get(f"/incidents/{number}").content.decode()
    assert "<script>alert" not in body
    assert "<img src=x" not in body
    assert "<b>bold" not in body


def test_the_address_by_id_leads_to_the_one_by_number(alice: Client) -> None:
    number = opened()
    assert alice.get(f"/incidents/{id_of(number)}").headers["Location"] == f"/incidents/{number}"


def test_what_alice_does_is_recorded_as_hers_under_the_requests_id(alice: Client) -> None:
    number = opened()
    response = alice.post(f"/incidents/{number}/acknowledge")
    event = queries.incident_events(str(number))[-1]
    assert (event.type, event.actor) == ("incident.acknowledged", "user:alice")
    assert event.trace == response.headers["X-Request-ID"]


def test_a_refused_action_answers_409_with_the_reason_beside_the_button(alice: Client) -> None:
    number = opened()
    commands.acknowledge(id_of(number), BOB)
    response = alice.post(f"/incidents/{number}/acknowledge")
    assert response.status_code == 409
    assert "already acknowledged, by bob" in response.content.decode()


def test_what_was_typed_is_still_there_when_it_was_refused(alice: Client) -> None:
    number = opened()
    form = {"cause": "other", "other": "not a component", "note": "Changed the optic"}
    response = alice.post(f"/incidents/{number}/resolve", form)
    assert response.status_code == 400
    assert "Changed the optic" in response.content.decode()
    assert state(number) == "open"


@pytest.mark.parametrize(
    ("form", "cause"),
    [
        ({"cause": "none"}, "none"),
        ({"cause": "other", "other": "disk/d9"}, "disk/d9"),
        ({"cause": "tor/t1"}, "tor/t1"),
    ],
)
def test_a_ticket_is_resolved_with_a_suspect_nothing_or_something_else(
    alice: Client, form: dict[str, str], cause: str
) -> None:
    number = opened(component="tor/t1")
    alice.post(f"/incidents/{number}/resolve", form)
    assert queries.get(str(number)).incident.confirmed_cause == cause


def test_after_an_action_only_addresses_of_our_own_are_gone_to(alice: Client) -> None:
    number = opened()
    response = alice.post(f"/incidents/{number}/acknowledge", {"next": "//elsewhere.example/"})
    assert response.headers["Location"] == f"/incidents/{number}"


def test_an_unknown_verb_is_a_404_and_changes_nothing(alice: Client) -> None:
    number = opened()
    assert alice.post(f"/incidents/{number}/explode").status_code == 404
    assert state(number) == "open"


def test_an_action_needs_the_forms_token() -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(get_user_model().objects.create(username="alice"))
    number = opened()
    assert strict.post(f"/incidents/{number}/acknowledge").status_code == 403


def test_staff_change_a_schedule_and_others_may_not(alice: Client) -> None:
    name = Schedule.objects.values_list("name", flat=True)[0]
    form = {"name": name, "every": "10 min", "length": "2 h", "grace": "1 min"}
    assert signed_in("charlie").post("/schedules", form).status_code == 403
    alice.post("/schedules", form)
    changed = Schedule.objects.get(name=name)
    assert (changed.every.total_seconds(), changed.length.total_seconds(), changed.enabled) == (
        600,
        7200,
        False,
    )


def test_a_schedule_of_no_length_is_refused_in_words(alice: Client) -> None:
    name = Schedule.objects.values_list("name", flat=True)[0]
    response = alice.post("/schedules", {"name": name, "every": "soon", "length": "1 h", "grace": "0 s"})
    assert response.status_code == 400
    assert "Every must be a duration" in response.content.decode()


def test_only_the_signed_in_get_a_token_for_live_updates(alice: Client) -> None:
    assert Client().get("/live").status_code == 302
    assert alice.get("/live").json()["url"].startswith("http://testserver:")


def test_an_analyzer_without_a_record_says_so(alice: Client) -> None:
    assert "No resolved incidents yet" in alice.get(reverse("analyzers")).content.decode()


def test_a_missing_schedule_is_named_with_one_full_stop() -> None:
    page = signed_in("dora").get("/on-call/nosuch").content.decode()
    assert "nosuch." in page
    assert "nosuch.." not in page
    assert "/incidents/12" not in page


def test_a_new_analysis_schedule_without_an_analyzer_leads_to_their_list() -> None:
    response = signed_in("dora", is_staff=True).get("/schedules/new")
    assert (response.status_code, response["Location"]) == (302, "/analyzers")
