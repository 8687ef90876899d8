"""One action on several incidents over the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.test import Client

from incidents import bulk, commands, queries
from incidents.commands import Report
from incidents.teams.models import Membership, Team
from ingest.api import keys
from ingest.queries import Context

pytestmark = pytest.mark.django_db
BOB = Context("user:bob")


@pytest.fixture
def client() -> Client:
    for name in ("bob", "charlie"):
        User.objects.create(username=name)
    return Client(headers={"Authorization": f"Bearer {keys.create('script', ['incidents:write'])}"})


def opened(title: str = "Rack 12 loses packets", **fields: Any) -> int:
    return commands.open_incident(Report(title, **fields), BOB).incident.number


def ticket(number: int) -> queries.Incident:
    return queries.get(str(number)).incident


def ask(client: Client, action: str, **body: Any) -> Any:
    body = {"action": action, **body}
    return client.post("/api/v1/incidents/bulk", body, content_type="application/json")


def test_each_ticket_has_its_answer(client: Client) -> None:
    first, second = opened(), opened()
    commands.acknowledge(ticket(second).id, BOB)
    answer = ask(client, "acknowledge", incidents=[ticket(first).id, str(second), 999_999]).json()
    assert (answer["done"], answer["refused"], answer["more"]) == (1, 2, False)
    assert [(one["incident"], one["status"]) for one in answer["results"]] == [
        (str(first), 200),
        (str(second), 409),
        ("999999", 404),
    ]
    assert "already acknowledged, by bob" in answer["results"][1]["reason"]


@pytest.mark.parametrize(
    ("action", "fields", "changed"),
    [
        ("acknowledge", {}, ("state", "open", "acknowledged")),
        ("assign", {"owner": "bob"}, ("owner", None, "bob")),
        ("hand_over", {"team": "network", "reason": "the fabric"}, ("team", "storage", "network")),
        ("snooze", {}, ("state", "open", "snoozed")),
        ("set_severity", {"severity": "info"}, ("severity", "error", "info")),
        ("resolve", {"confirmed_cause": "own"}, ("state", "open", "resolved")),
    ],
)
def test_what_the_answer_says_takes_it_back(
    client: Client, action: str, fields: dict[str, str], changed: tuple[str, Any, Any]
) -> None:
    field, before, after = changed
    number = opened(component="disk/d1", severity="error")
    (result,) = ask(client, action, incidents=[number], fields=fields).json()["results"]
    assert getattr(ticket(number), field) == after
    assert ask(client, incidents=[number], **result["undo"]).json()["refused"] == 0
    assert getattr(ticket(number), field) == before


def test_a_search_reaches_what_fits_it_and_nothing_else(client: Client) -> None:
    fits, other = opened("Opal is dull"), opened("Agate is dull")
    answer = ask(client, "assign", search="opal", fields={"owner": "bob"}).json()
    assert [one["number"] for one in answer["results"]] == [fits]
    assert ticket(other).owner is None


def test_a_search_says_that_there_are_more(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MOST_AT_ONCE", 2)
    numbers = [opened("Opal is dull") for _ in range(3)]
    answer = ask(client, "acknowledge", search="opal", order="oldest").json()
    assert (answer["done"], answer["more"]) == (2, True)
    assert ticket(numbers[2]).state == "open"


def test_tickets_are_merged_into_the_one_that_is_named(client: Client) -> None:
    first, second = opened("One"), opened("Two")
    answer = ask(client, "merge", incidents=[first, second], fields={"into": first}).json()
    assert [one["number"] for one in answer["results"]] == [second]
    assert ticket(second).merged_number == first


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"action": "explode", "incidents": [1]}, "action"),
        ({"action": ["acknowledge"], "incidents": [1]}, "action"),
        ({"action": "acknowledge"}, "incidents"),
        ({"action": "acknowledge", "incidents": [1], "search": "x"}, "incidents"),
        ({"action": "acknowledge", "incidents": []}, "incidents"),
        ({"action": "acknowledge", "incidents": "1"}, "incidents"),
        ({"action": "acknowledge", "incidents": [True]}, "incidents"),
        ({"action": "acknowledge", "incidents": [1] * 1001}, "incidents"),
        ({"action": "acknowledge", "search": ""}, "search"),
        ({"action": "acknowledge", "search": "severity:hgih"}, "search"),
        ({"action": "acknowledge", "search": 5}, "search"),
        ({"action": "acknowledge", "search": "x", "order": {}}, "order"),
        ({"action": "hand_over", "incidents": [1], "fields": {"team": "network"}}, "fields.reason"),
        ({"action": "acknowledge", "incidents": [1], "fields": {"why": "x"}}, "fields.why"),
        ({"action": "acknowledge", "incidents": [1], "fields": []}, "fields"),
        ({"action": "snooze", "incidents": [1], "fields": {"until": "soon"}}, "fields.until"),
        ({"action": "merge", "incidents": [1], "fields": {"into": 999_999}}, "fields.into"),
    ],
)
def test_a_body_that_makes_no_sense_is_refused_by_field(
    client: Client, body: dict[str, Any], field: str
) -> None:
    answer = client.post("/api/v1/incidents/bulk", body, content_type="application/json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])


@pytest.mark.parametrize(
    ("action", "fields", "field"),
    [
        ("hand_over", {"team": "nope", "reason": "x"}, "team"),
        ("set_severity", {"severity": 5}, "severity"),
        ("resolve", {"confirmed_cause": ["a"]}, "confirmed_cause"),
        ("assign", {"owner": "\0"}, "owner"),
    ],
)
def test_what_fits_no_ticket_does_nothing(
    client: Client, action: str, fields: dict[str, Any], field: str
) -> None:
    number = opened(component="disk/d1")
    before = len(queries.incident_events(str(number)))
    answer = ask(client, action, incidents=[number], fields=fields)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [f"fields.{field}"])
    assert len(queries.incident_events(str(number))) == before


@pytest.mark.parametrize("name", ["", "x", "9" * 90, "é", "0", 10**30, -1])
def test_a_name_that_is_none_is_not_found_or_refused(client: Client, name: str | int) -> None:
    answer = ask(client, "acknowledge", incidents=[name])
    assert answer.status_code == 400 or answer.json()["results"][0]["status"] == 404


def test_who_may_not_is_told_for_each_ticket() -> None:
    number = opened(component="disk/d1")
    charlie = get_user_model().objects.create(username="charlie")
    Membership.objects.create(team=Team.objects.get(slug="network"), user=charlie, role="responder")
    client = Client()
    client.force_login(charlie)
    (result,) = ask(client, "acknowledge", incidents=[number]).json()["results"]
    assert result["status"] == 403
    assert "requires the role responder of storage" in result["reason"]


def test_what_has_changed_since_the_list_was_read_is_left_alone(client: Client) -> None:
    first, second = opened(), opened()
    seen = queries.get(str(second)).position
    commands.assign(ticket(first).id, "bob", BOB)
    answer = client.post(
        "/api/v1/incidents/bulk",
        {"action": "assign", "incidents": [first, second], "fields": {"owner": "charlie"}},
        content_type="application/json",
        headers={"If-Match": f'"{seen}"'},
    ).json()
    assert [one["status"] for one in answer["results"]] == [200, 409]
    assert (ticket(first).owner, ticket(second).owner) == ("bob", "charlie")
