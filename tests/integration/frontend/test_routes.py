"""Routes in the console: the tree, the tester, and changes that are tried before they are kept."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from incidents.incident.models import MemberAlert
from incidents.teams.models import Route, Service, Team
from ingest.api import keys
from ingest.queries import configured
from tests.integration.incidents.routing.test_tree import alert, send

pytestmark = pytest.mark.usefixtures("log_database")
PAGE = "/settings/routes"


def signed_in(name: str, is_staff: bool) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username=name, is_staff=is_staff))
    return client


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    return signed_in("alice", True)


@pytest.fixture
def bob(log_database: str) -> Client:  # noqa: ARG001
    return signed_in("bob", False)


def keep(client: Client, **typed: Any) -> Any:
    return client.post(PAGE, {"do": "keep", **typed})


def text(answer: Any) -> str:
    return str(answer.content.decode())


def test_the_tree_shows_every_rule_with_what_it_asks_and_gives(bob: Client) -> None:
    Route.objects.create(
        name="nvme",
        parent=Route.objects.get(name="disk"),
        order=1,
        pattern="disk/nvme-*",
        severity="critical",
    )
    shown = text(bob.get(PAGE))
    assert 'id="rule-nvme"' in shown
    assert "severity critical" in shown
    assert "Move nvme" not in shown  # Bob is not staff


def test_what_is_described_shows_its_way_through_the_tree(bob: Client) -> None:
    shown = text(bob.get(PAGE, {"component": "disk/d7", "labels": 'rack="r1"'}))
    assert "outed to Storage because rule <code>disk</code> (8th) matched <code>disk/*</code>." in shown
    assert 'id="rule-disk" class="matched"' in shown
    assert 'id="rule-tor" class="did_not_match"' in shown


def test_an_alert_that_fires_is_offered_and_shows_its_way(bob: Client) -> None:
    send(alert("d7", component="disk/d7"))
    id_ = MemberAlert.objects.get().alert
    assert f"?alert={id_}" in text(bob.get(PAGE))
    assert 'id="rule-disk" class="matched"' in text(bob.get(PAGE, {"alert": str(id_)}))


@pytest.mark.parametrize(
    "asked",
    [
        {"component": "nothing"},
        {"labels": "="},
        {"labels": 'a=~"b"'},
        {"alert": "x"},
        {"alert": "11111111-1111-4111-8111-111111111111"},
        {"component": "a/b", "confidence": "many"},
        {"component": "a/b", "confidence": "101"},
        {"component": "a/b", "severity": "loud"},
    ],
)
def test_what_makes_no_sense_is_said_beside_its_field(bob: Client, asked: dict[str, str]) -> None:
    answer = bob.get(PAGE, asked)
    assert (answer.status_code, "problem" in text(answer)) == (400, True)


def paste(client: Client, payload: Any, **typed: str) -> Any:
    body = payload if isinstance(payload, str) else json.dumps(payload)
    return client.post(PAGE, {"do": "paste", "endpoint": "generic", "payload": body, **typed})


def test_a_payload_that_anybody_pastes_shows_which_alert_goes_where_and_what_is_not_taken(
    bob: Client,
) -> None:
    storage = Team.objects.get(slug="storage")
    Route.objects.create(name="disks", order=1, pattern="disk/*", team=storage)
    over, fires = (
        {"status": status, "labels": {"alertname": "Slow", "disk": name}, "startsAt": "2026-01-05T10:00:00Z"}
        for status, name in (("resolved", "d1"), ("firing", "d7"))
    )
    shown = text(
        paste(bob, {"version": "4", "status": "firing", "alerts": [over, fires]}, endpoint="alertmanager")
    )
    where = shown.partition('id="where"')[2].partition("</section>")[0]
    assert "The first firing alert of 2 alerts" in where
    assert "disk/d7" in where
    assert "Storage" in where
    (address,) = re.findall(r'href="([^"]+)#where">Link to this test', where)
    again = text(bob.get(PAGE + unescape(address))).partition('id="where"')[2].partition("</section>")[0]
    assert "Storage" in again
    assert "disk/d7" in unescape(address).replace("%2F", "/")
    assert not MemberAlert.objects.exists()


def test_a_pasted_payload_is_read_by_the_mapping_of_its_integration(bob: Client) -> None:
    how = {"title": "$.what", "key": "$.what", "component": "$.where"}
    keys.create("own form", ["alerts"], mapping=how)
    assert "<option>own form</option>" in text(bob.get(PAGE))
    shown = text(paste(bob, {"what": "It crawls", "where": "disk/d7"}, sender="own form"))
    assert "It crawls" in shown.partition('id="where"')[2].partition("</section>")[0]


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"payload": "{"}, "payload"),
        ({"payload": ""}, "payload"),
        ({"payload": "\x00"}, "payload"),
        ({"payload": "[" * 5_000}, "payload"),
        ({"payload": {"version": "3", "alerts": []}, "endpoint": "alertmanager"}, "payload.version"),
        ({"payload": {"title": "slow"}, "endpoint": "nowhere"}, "endpoint: must be one of"),
        ({"payload": {"title": "slow"}, "sender": "nobody"}, "nobody"),
        ({"payload": {"title": "slow"}, "sender": "a\x00b"}, "integration"),
    ],
)
def test_a_payload_that_cannot_be_read_is_shown_again_with_the_reason(
    bob: Client, typed: Any, says: str
) -> None:
    answer = paste(bob, **typed)
    assert answer.status_code == 400
    assert says in text(answer).partition("Invalid payload:")[2].partition("</p>")[0]


def test_a_rule_is_made_with_all_that_it_can_say(alice: Client) -> None:
    Service.objects.create(slug="block", name="Block storage")
    typed = {
        "name": "nvme",
        "parent": "disk",
        "pattern": "disk/nvme-*",
        "labels": 'env="prod"\nrow!="7"',
        "severities": ["critical", "error"],
        "integration": "prometheus",
        "min_confidence": "",
        "hours": "mon-fri 09:00-17:00\n22:00-06:00",
        "zone": "Europe/Berlin",
        "team": "compute",
        "service": "block",
        "severity": "info",
        "policy": "night",
        "group": "labels",
        "by": "rack, row",
        "window": "1 h",
    }
    assert keep(alice, **typed).status_code == 302
    row = Route.objects.get(name="nvme")
    assert (row.parent and row.parent.name, row.team and row.team.slug, row.policy) == (
        "disk",
        "compute",
        "night",
    )
    assert row.grouping == {"by": ["rack", "row"], "window_seconds": 3600}
    assert row.when["labels"] == ['env="prod"', 'row!="7"']
    (event,) = configured("route", "nvme")
    assert (event.actor, event.body["after"]["severity"]) == ("user:alice", "info")


def test_the_form_gives_back_what_it_was_given(alice: Client) -> None:
    typed = {
        "name": "all",
        "min_confidence": "92.5",
        "hours": "22:00-06:00",
        "group": "alone",
        "window": "90 s",
        "follow_suggestion": "yes",
    }
    keep(alice, **typed)
    before = Route.objects.values().get(name="all")
    shown = text(alice.get(PAGE, {"edit": "all"}))
    assert 'value="92.5"' in shown
    assert "22:00-06:00" in shown
    keep(alice, edited="all", **{**typed, "zone": "UTC", "window": "1 min 30 s"})
    assert Route.objects.values().get(name="all") == before


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"pattern": "disk"}, "must match kind/name"),
        ({"labels": "("}, "labels: must be such as"),
        ({"hours": "noon"}, "must be such as"),
        ({"min_confidence": "many"}, "must be a percentage"),
        ({"min_confidence": "nan"}, 'class="problem"'),
        ({"group": "labels"}, "enter the labels"),
        ({"group": "all", "window": "soon"}, "must be a duration"),
        ({"group": "all", "window": "5 s"}, "must be 60 to"),
        ({"group": "no-such"}, "choose how"),
        ({"follow_suggestion": "perhaps"}, "choose a value"),
        ({"name": "tor"}, "name of another rule"),
        ({"team": "no-such"}, "no-such"),
        ({"pattern": "a/\0"}, 'class="problem"'),
    ],
)
def test_what_cannot_be_a_rule_is_shown_again_with_the_reason(alice: Client, typed: Any, said: str) -> None:
    before = Route.objects.count()
    answer = keep(alice, **typed)
    assert (answer.status_code, said in text(answer).lower()) == (400, True)
    assert Route.objects.count() == before


def test_a_rule_is_not_put_beneath_itself(alice: Client) -> None:
    keep(alice, name="inner", parent="disk")
    answer = keep(alice, edited="disk", name="disk", parent="inner", pattern="disk/*")
    assert "would be its own ancestor" in text(answer)


def test_a_change_is_tried_on_what_was_recorded_and_keeps_nothing(alice: Client) -> None:
    send(*(alert(f"d{n}", component=f"disk/d{n}") for n in range(5)))
    typed = {"edited": "disk", "name": "disk", "pattern": "disk/*", "team": "network"}
    shown = text(alice.post(PAGE, {"do": "try", **typed}))
    assert "5 would be routed differently" in shown
    assert "routed to Network" in shown
    assert Team.objects.get(routes__name="disk").slug == "storage"


def test_a_new_rule_is_tried_too(alice: Client) -> None:
    send(alert("l1", component="lamp/l1"))
    shown = text(alice.post(PAGE, {"do": "try", "pattern": "lamp/*", "team": "compute"}))
    assert "1 would be routed differently" in shown
    assert not Route.objects.filter(pattern="lamp/*").exists()


def test_a_renamed_rule_keeps_what_is_beneath_it_also_when_it_is_tried(alice: Client) -> None:
    keep(alice, name="inner", parent="disk", policy="night")
    send(alert("d1", component="disk/d1"))
    typed = {"edited": "disk", "name": "discs", "pattern": "disk/*", "team": "storage"}
    assert "no routing differences" in text(alice.post(PAGE, {"do": "try", **typed}))
    keep(alice, **typed)
    assert [one.name for one in Route.objects.filter(parent__name="discs")] == ["inner"]


def test_what_its_removal_would_change_is_shown_before_it_is_gone(alice: Client) -> None:
    send(alert("d1", component="disk/d1"))
    assert "Without disk, 1 would be routed differently" in text(alice.post(f"{PAGE}/disk/try-without"))
    assert Route.objects.filter(name="disk").exists()
    alice.post(f"{PAGE}/disk/remove")
    assert not Route.objects.filter(name="disk").exists()


def test_a_rule_moves_among_its_siblings_and_each_that_moved_is_recorded(alice: Client) -> None:
    for _ in range(2):
        alice.post(f"{PAGE}/t3/up")
    alice.post(f"{PAGE}/t3/up")  # it is the first one already
    assert [row.name for row in Route.objects.all()[:3]] == ["t3", "tor", "t2"]
    assert [event.body["after"]["order"] for event in configured("route", "t3")] == [2, 1]


def test_people_who_are_not_staff_change_nothing(bob: Client) -> None:
    assert keep(bob, name="x").status_code == 403
    for verb in ("up", "remove", "try-without"):
        assert bob.post(f"{PAGE}/disk/{verb}").status_code == 403


def test_what_is_not_there_is_not_there(alice: Client) -> None:
    assert alice.get(PAGE, {"edit": "no-such"}).status_code == 404
    assert alice.post(f"{PAGE}/no-such/up").status_code == 404
    assert alice.post(f"{PAGE}/disk/explode").status_code == 404


def test_without_rules_the_page_says_what_to_do(alice: Client) -> None:
    Route.objects.all().delete()
    assert "No rules." in text(alice.get(PAGE))


def test_a_rule_that_cannot_be_read_is_shown_with_the_reason(bob: Client) -> None:
    Route.objects.create(name="lost", order=0, when={"hours": ["mon 09:00-17:00"], "zone": "Mars/Olympus"})
    assert "Rule <code>lost</code> is skipped: zone: must be a time zone" in text(bob.get(PAGE))
