"""Views of the inbox that people keep, and the palette that leads to them."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from frontend.views.inbox.listing import TABS
from incidents import commands
from incidents.commands import Report
from incidents.saved_views import commands as commands_of_views
from incidents.saved_views.models import SavedView
from incidents.teams.models import Membership, Team
from ingest.log.configuration_events import configured
from ingest.queries import Context

pytestmark = pytest.mark.usefixtures("log_database")
BOB = Context("user:bob")


def signed_in(name: str, **fields: Any) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username=name, **fields))
    return client


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    return signed_in("alice", is_staff=True)


def keep(client: Client, name: str, query: str = "search=severity%3Acritical", **fields: str) -> str:
    """Text of the page afterwards."""
    form = {"name": name, "query": query, **fields}
    return client.post("/inbox/views", form, follow=True).content.decode()


def the_view() -> SavedView:
    return SavedView.objects.get(removed_at=None)


def test_a_view_keeps_tab_search_and_order_and_nothing_else(alice: Client) -> None:
    keep(
        alice, "Mine", "order=oldest&cursor=0:x&search=owner%3Ame&tab=work&as_of=2026-11-21T10:00:00Z&evil=1"
    )
    assert the_view().query == "tab=work&search=owner%3Ame&order=oldest"


def test_a_view_of_one_s_own_is_nobody_else_s(alice: Client) -> None:
    keep(alice, "Only for Alice")
    assert "Only for Alice" in alice.get("/?tab=all").content.decode()
    charlie = signed_in("charlie")
    assert "Only for Alice" not in charlie.get("/?tab=all").content.decode()
    assert charlie.post(f"/inbox/views/{the_view().pk}/remove").status_code == 404


def test_a_view_of_a_team_is_shown_to_its_people_and_recorded(alice: Client) -> None:
    keep(alice, "Disks", team="storage")
    charlie = signed_in("charlie")
    assert "Disks" in charlie.get("/?tab=all").content.decode()
    event = configured("saved_view", "storage-disks")[0]
    assert (event.actor, event.body["after"]["team"]) == ("user:alice", "storage")


def test_a_view_of_a_team_is_shared_and_changed_by_its_responders(alice: Client) -> None:
    charlie = signed_in("charlie")
    Membership.objects.create(
        team=Team.objects.get(slug="network"),
        user=get_user_model().objects.get(username="charlie"),
        role="responder",
    )
    assert "only responders of" in keep(charlie, "Disks", team="storage")
    keep(alice, "Links", team="network")
    charlie.post(f"/inbox/views/{the_view().pk}/rename", {"name": "Our links"})
    assert the_view().name == "Our links"
    keep(alice, "Disks", team="storage")
    disks = SavedView.objects.get(name="Disks")
    charlie.post(f"/inbox/views/{disks.pk}/rename", {"name": "Taken"})
    disks.refresh_from_db()
    assert disks.name == "Disks"


def test_a_removed_view_is_brought_back_by_its_undo(alice: Client) -> None:
    keep(alice, "Gone soon")
    pk = the_view().pk
    body = alice.post(f"/inbox/views/{pk}/remove", follow=True).content.decode()
    assert f'action="/inbox/views/{pk}/bring-back"' in body
    alice.post(f"/inbox/views/{pk}/bring-back")
    assert the_view().pk == pk


def test_the_inbox_opens_with_the_view_that_was_chosen(alice: Client) -> None:
    keep(alice, "First", default="1")
    assert alice.get("/").headers["Location"] == "?search=severity%3Acritical"
    alice.post(f"/inbox/views/{the_view().pk}/open-with", {})
    assert alice.get("/").status_code == 200


def in_api(client: Client, method: str, path: str = "", **body: Any) -> Any:
    ask = getattr(client, method)
    return ask(f"/api/v1/saved_views{path}", body, content_type="application/json")


def test_the_api_and_the_console_share_the_views_of_a_team(alice: Client) -> None:
    made = in_api(
        alice, "post", slug="disks", name="Disks", team="storage", search="component:disk/", tab="all"
    )
    assert made.status_code == 201
    assert made.json()["order"] == "severity"
    assert 'href="/?tab=all&amp;search=component%3Adisk%2F"' in alice.get("/?tab=open").content.decode()
    keep(alice, "Critical", team="network")
    keep(alice, "Only for Alice")
    listed = alice.get("/api/v1/saved_views").json()["results"]
    assert [(one["slug"], one["search"]) for one in listed] == [
        ("disks", "component:disk/"),
        ("network-critical", "severity:critical"),
    ]
    assert in_api(alice, "patch", "/disks", name="All disks").json()["search"] == "component:disk/"
    assert in_api(alice, "delete", "/disks").status_code == 204
    assert [event.type for event in configured("saved_view", "disks")] == ["configuration.changed"] * 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"search": "severity:hgih"}, "search"),
        ({"search": "é" * 900}, "search"),
        ({"tab": "yours"}, "tab"),
        ({"order": "best"}, "order"),
        ({"name": "a\0b"}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"team": "nope"}, "team"),
        ({"slug": "Not one"}, "slug"),
        ({"query": "search=x"}, "query"),
    ],
)
def test_a_view_that_makes_no_sense_is_refused_by_field(
    alice: Client, body: dict[str, Any], field: str
) -> None:
    told = {"slug": "disks", "name": "Disks", "team": "storage", **body}
    answer = in_api(alice, "post", **told)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])


def test_two_views_of_a_name_or_slug_are_refused(alice: Client) -> None:
    in_api(alice, "post", slug="disks", name="Disks", team="storage")
    assert in_api(alice, "post", slug="disks", name="Other", team="storage").status_code == 400
    assert in_api(alice, "post", slug="other", name="Disks", team="storage").status_code == 400


def test_over_the_api_too_a_view_is_shared_by_responders_of_its_team(alice: Client) -> None:
    charlie = signed_in("charlie")
    Membership.objects.create(
        team=Team.objects.get(slug="network"),
        user=get_user_model().objects.get(username="charlie"),
        role="responder",
    )
    assert in_api(charlie, "post", slug="links", name="Links", team="network").status_code == 201
    in_api(alice, "post", slug="disks", name="Disks", team="storage")
    assert in_api(charlie, "patch", "/disks", team="network").status_code == 403
    assert in_api(charlie, "patch", "/links", team="storage").status_code == 403
    assert SavedView.objects.get(slug="links").team == Team.objects.get(slug="network")


def test_tabs_of_views_are_those_of_the_inbox() -> None:
    assert tuple(tab.name for tab in TABS) == commands_of_views.TABS


@pytest.mark.parametrize("name", ["", " ", "x" * 61, "a\0b", "two\nlines"])
def test_a_name_that_is_none_is_refused_in_words(alice: Client, name: str) -> None:
    assert "Not done: name" in keep(alice, name)
    assert not SavedView.objects.exists()


def test_a_name_is_given_once(alice: Client) -> None:
    keep(alice, "Twice")
    assert "view named Twice already exists" in keep(alice, "Twice", "search=other")
    assert SavedView.objects.count() == 1


@pytest.mark.parametrize(
    "query", ["search=" + "x" * 3000, "search=%00", "&".join(f"a{n}=1" for n in range(99))]
)
def test_an_address_that_is_none_is_refused(alice: Client, query: str) -> None:
    assert alice.post("/inbox/views", {"name": "Odd", "query": query}).status_code == 302
    assert not SavedView.objects.exists()


# The palette
# ----------------------------------------------------------------------------------------------------------
def found(client: Client, text: str) -> str:
    return client.get("/palette", {"q": text}).content.decode()


def test_the_palette_finds_a_ticket_by_number_and_by_title(alice: Client) -> None:
    number = commands.open_incident(Report("Disk is slow"), BOB).incident.number
    for text in (str(number), f"#{number}", "disk IS"):
        assert f'data-href="/incidents/{number}"' in found(alice, text)


def test_the_palette_finds_pages_and_views(alice: Client) -> None:
    keep(alice, "Disks of mine")
    assert 'data-href="/reports"' in found(alice, "repo")
    assert "Disks of mine" in found(alice, "disks")


def test_the_palette_shows_what_is_for_staff_to_staff_alone(alice: Client) -> None:
    assert "Channels" in found(alice, "channels")
    assert "Channels" not in found(signed_in("charlie"), "channels")


@pytest.mark.parametrize("text", ["", "\0", "%", "#", "9" * 50, "<b>", "٣", "x" * 5000])
def test_the_palette_takes_any_text(alice: Client, text: str) -> None:
    answer = alice.get("/palette", {"q": text})
    assert answer.status_code == 200
    assert b"<b>" not in answer.content
