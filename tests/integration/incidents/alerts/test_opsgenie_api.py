"""Opsgenie's Alert API: what its clients create, close, acknowledge, note and list."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from incidents import queries
from incidents.escalation.sweep import sweep
from incidents.follower import follower
from incidents.notifications.models import Notification
from incidents.teams.models import Route, Team
from ingest.api import keys
from ingest.queries import now_utc
from tests.following import follow_to_the_end
from tests.integration.incidents.escalation.cases import people, policy

pytestmark = pytest.mark.usefixtures("log_database")


class Caller:
    def __init__(self, name: str, *scopes: str) -> None:
        self.key = keys.create(name, scopes)

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        sent = "" if body is None else body if isinstance(body, str) else json.dumps(body)
        return Client().generic(
            method,
            f"/v2/alerts{path}",
            sent,
            "application/json",
            headers={"Authorization": f"GenieKey {self.key}"},
            CONTENT_LENGTH=str(len(sent)),
        )

    def done(self, method: str, path: str, body: Any = None) -> str:
        """The id of a request that is accepted, once the followers are through."""
        answer = self(method, path, body)
        assert answer.status_code == 202, answer.content
        assert answer.json()["result"] == "Request will be processed"
        follow_to_the_end(follower())
        return str(answer.json()["requestId"])


@pytest.fixture
def call() -> Caller:
    return Caller("genie", "alerts", "incidents:read", "incidents:write")


def state() -> tuple[str, str, str]:
    incident = queries.get("1").incident
    return incident.state, incident.severity, incident.component or ""


def test_an_alert_opens_an_incident_is_acknowledged_noted_and_closed(call: Caller) -> None:
    alias = "srv/cpu 1"
    at = f"/{quote(alias, safe='')}"
    request = call.done(
        "POST", "", {"message": "CPU is hot", "alias": alias, "entity": "srv-1", "priority": "P1"}
    )
    assert state() == ("open", "critical", "host/srv-1")
    status = call("GET", f"/requests/{request}").json()["data"]
    assert (status["success"], status["status"]) == (True, "1 fired")
    whole = f"/{status['alertId']}"
    assert call("GET", whole).json()["data"]["alias"] == alias
    call.done("POST", f"{at}/acknowledge?identifierType=alias", "")
    assert state()[0] == "acknowledged"
    call.done("POST", f"{at}/notes?identifierType=alias", {"note": "fan is dead", "user": "alice"})
    assert any("alice: fan is dead" in json.dumps(event.body) for event in queries.incident_events("1"))
    shown = call("GET", whole).json()["data"]
    assert (shown["status"], shown["acknowledged"], shown["priority"]) == ("open", True, "P1")
    call.done("POST", f"{at}/close?identifierType=alias", {"note": "fan replaced", "user": "bob"})
    assert state()[0] == "resolved"
    closed = call("GET", whole).json()["data"]
    assert (closed["status"], closed["description"]) == ("closed", "bob: fan replaced")
    again = call.done("POST", f"{at}/close?identifierType=alias", "")
    assert call("GET", f"/requests/{again}").json()["data"]["status"] == "1 repeated"


def test_lists_are_filtered_sorted_and_paged(call: Caller) -> None:
    for number in range(3):
        call.done(
            "POST", "", {"message": f"Disk {number}", "alias": f"d{number}", "tags": ["disk", f"t{number}"]}
        )
    call.done("DELETE", "/d2?identifierType=alias")

    def aliases(**asked: Any) -> list[str]:
        answer = call("GET", f"?{'&'.join(f'{k}={quote(str(v))}' for k, v in asked.items())}")
        assert answer.status_code == 200, answer.content
        return [one["alias"] for one in answer.json()["data"]]

    assert aliases(sort="alias", order="asc") == ["d0", "d1", "d2"]
    assert aliases(query="status:open", sort="alias") == ["d1", "d0"]
    assert aliases(query='tag:t2 AND message:"disk 2" AND status: closed') == ["d2"]
    assert call("GET", "/count?query=status%3Aopen").json()["data"] == {"count": 2}
    page = call("GET", "?limit=2&sort=alias&order=asc").json()
    assert [one["alias"] for one in page["data"]] == ["d0", "d1"]
    rest = call("GET", page["paging"]["next"].partition("/v2/alerts")[2]).json()
    assert ([one["alias"] for one in rest["data"]], "next" in rest["paging"]) == (["d2"], False)


def comments(number: str = "1") -> list[str]:
    events = queries.incident_events(number)
    return [event.body["text"] for event in events if event.type == "incident.commented"]


def test_changes_of_an_open_alert_reach_its_incident(call: Caller) -> None:
    get_user_model().objects.create_user("alice", email="alice@example.com")
    call.done("POST", "", {"message": "Disk is slow", "alias": "d", "priority": "P3"})
    at = "/d%s?identifierType=alias"
    call.done("PUT", at % "/priority", {"priority": "P1"})
    call.done("PUT", at % "/message", {"message": "Disk is gone", "note": "it was pulled", "user": "bob"})
    call.done("POST", at % "/assign", {"owner": {"username": "Alice@example.com"}})
    incident = queries.get("1").incident
    assert (incident.severity, incident.title, incident.owner) == ("critical", "Disk is gone", "alice")
    call.done("POST", at % "/acknowledge", {})
    call.done("POST", at % "/unacknowledge", {})
    assert state()[0] == "open"
    until = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    call.done("POST", at % "/snooze", {"endTime": until, "note": "spare ordered"})
    assert state()[0] == "snoozed"
    assert comments() == ["bob: it was pulled"]


def test_tags_details_and_descriptions_are_comments_each_once(call: Caller) -> None:
    call.done("POST", "", {"message": "Disk is slow", "alias": "d"})
    at = "/d%s?identifierType=alias"
    call.done("POST", at % "/tags", {"tags": ["disk", "urgent"]})
    call.done("POST", at % "/details", {"details": {"rack": "r1"}})
    call.done("DELETE", f"{at % '/tags'}&tags=disk,urgent")
    call.done("DELETE", f"{at % '/details'}&keys=rack")
    for _ in range(2):
        call.done("PUT", at % "/description", {"description": "latency 80 ms"})
    assert comments() == [
        "Tags: disk, urgent",
        "rack: r1",
        "Tags removed: disk, urgent",
        "Details removed: rack",
        "latency 80 ms",
    ]


def test_what_is_done_to_one_alert_of_several_is_refused(call: Caller) -> None:
    Route.objects.all().delete()
    team = Team.objects.get(is_default=True)
    Route.objects.create(name="all", order=1, team=team, grouping={"by": [], "window_seconds": None})
    for alias in ("d1", "d2"):
        call.done("POST", "", {"message": "Disk is slow", "alias": alias})
    assert queries.get("1").incident.alerts == 2
    snooze = call("POST", "/d1/snooze?identifierType=alias", {"endTime": "2099-01-01T00:00:00Z"})
    assert (snooze.status_code, snooze.json()["message"]) == (
        409,
        "The alert shares #1 with 1 others: act on the incident.",
    )
    call.done("PUT", "/d1/message?identifierType=alias", {"message": "Disk is gone"})
    assert comments() == ["Message: Disk is gone"]


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("POST", "snooze", {"endTime": "soon"}, "endTime"),
        ("POST", "assign", {"owner": {"username": "nobody"}}, "no person 'nobody'"),
        ("POST", "assign", {}, "owner.username"),
        ("POST", "tags", {"tags": []}, "tags"),
        ("POST", "details", {"details": {}}, "details"),
        ("PUT", "priority", {"priority": "high"}, "priority"),
        ("PUT", "priority", {}, "priority"),
        ("PUT", "message", {"message": " "}, "message"),
        ("PUT", "description", {}, "description"),
    ],
)
def test_a_change_that_cannot_be_read_is_refused(
    call: Caller, method: str, path: str, body: Any, words: str
) -> None:
    call.done("POST", "", {"message": "Disk is slow", "alias": "d"})
    answer = call(method, f"/d/{path}?identifierType=alias", body)
    assert (answer.status_code, words in answer.json()["message"]) == (422, True), answer.content
    assert comments() == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "/a/snooze", None, 405, "POST"),
        ("POST", "/a/message", {"message": "b"}, 405, "PUT"),
        ("POST", "/none/tags", {"tags": ["b"]}, 404, "none"),
        ("POST", "", {"alias": "a"}, 422, "message"),
        ("POST", "", "{", 422, "JSON"),
        ("POST", "/a/close?identifierType=name", {}, 422, "identifierType"),
        ("GET", "?query=detail.x%3A1", None, 422, "status:open"),
        ("GET", "?limit=101", None, 422, "limit"),
        ("GET", "?sort=rank", None, 422, "sort"),
        ("GET", "/none?identifierType=alias", None, 404, "none"),
        ("GET", "/requests/none", None, 404, "none"),
        ("POST", "/none/notes", {"note": "a"}, 404, "none"),
        ("PUT", "", {}, 405, "POST"),
        ("PUT", "/a/notes", {}, 405, "POST"),
        ("GET", "/none/notes", None, 404, "none"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(
    call: Caller, method: str, path: str, body: Any, status: int, words: str
) -> None:
    answer = call(method, path, body)
    assert answer.status_code == status, answer.content
    assert words in answer.json()["message"]


def test_a_key_acts_on_its_own_alerts_alone_and_needs_its_scopes(call: Caller) -> None:
    call.done("POST", "", {"message": "Disk", "alias": "d"})
    other = Caller("other", "alerts")
    other.done("POST", "/d/close?identifierType=alias", {})
    assert state()[0] == "open"
    assert other("GET", "").status_code == 403
    assert other("POST", "/d/notes", {"note": "a"}).status_code == 403
    assert other("POST", "/d/tags", {"tags": ["a"]}).status_code == 403
    other.done("POST", "", {"message": "Fan", "alias": "f"})
    other.done("PUT", "/f/message?identifierType=alias", {"message": "Fan is loud"})
    assert queries.get("2").incident.title == "Fan is loud"
    assert other("PUT", "/d/message?identifierType=alias", {"message": "mine"}).status_code == 404
    other.key = "dsr_wrong"
    assert other("POST", "", {"message": "a"}).status_code == 401
    assert other("GET", "").status_code == 401


def paged() -> list[str]:
    """People that messages are queued for, once an escalation is due, too."""
    sweep(now_utc())
    return sorted(str(one.person) for one in Notification.objects.all())


def test_a_responder_is_paged_and_the_escalation_goes_on(call: Caller) -> None:
    people("alice", "bob")
    policy(team=Team.objects.get(is_default=True).slug)
    call.done("POST", "", {"message": "Disk is slow", "alias": "d"})
    at = "/d/responders?identifierType=alias"
    call.done(
        "POST", at, {"responder": {"type": "user", "username": "bob@example.org"}, "note": "knows disks"}
    )
    assert comments() == ["Paged bob: knows disks"]
    assert paged() == ["alice", "bob"]
    assert queries.get("1").incident.state == "open"


def test_escalating_calls_the_next_people_of_the_policy_that_is_followed(call: Caller) -> None:
    people("alice", "bob")
    policy(team=Team.objects.get(is_default=True).slug)
    call.done("POST", "", {"message": "Disk is slow", "alias": "d"})
    assert paged() == ["alice"]
    at = "/d/escalate?identifierType=alias"
    call.done("POST", at, {"escalation": {"name": "Storage"}, "note": "no answer", "user": "charlie"})
    assert paged() == ["alice", "bob"]
    policy("other", team=None)
    answer = call("POST", at, {"escalation": {"id": "other"}})
    assert (answer.status_code, "follows storage" in answer.json()["message"]) == (409, True)
    assert call("POST", at, {"escalation": {"name": "none"}}).status_code == 422


def test_a_team_that_is_added_gets_the_incident(call: Caller) -> None:
    call.done("POST", "", {"message": "Disk is slow", "alias": "d"})
    for path, body in (
        ("teams", {"team": {"name": "Network"}, "note": "their switch"}),
        ("responders", {"responder": {"type": "team", "id": "network"}}),
    ):
        call.done("POST", f"/d/{path}?identifierType=alias", body)
    incident = queries.get("1").incident
    assert (incident.team, incident.hops) == ("network", 1)
    assert call("POST", "/d/teams?identifierType=alias", {"team": {"name": "nobody"}}).status_code == 422


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("responders", {}, 422, "responder.type"),
        ("responders", {"responder": {"type": "user", "username": "none"}}, 422, "no person 'none'"),
        ("responders", {"responder": {"type": "schedule", "name": "none"}}, 422, "no on-call schedule"),
        ("responders", {"responder": {"type": "escalation", "name": "none"}}, 422, "no escalation policy"),
        ("teams", {}, 422, "team.name"),
        ("escalate", {}, 422, "escalation.name"),
    ],
)
def test_a_responder_that_cannot_be_found_is_refused(
    call: Caller, path: str, body: Any, status: int, words: str
) -> None:
    call.done("POST", "", {"message": "Disk is slow", "alias": "d"})
    answer = call("POST", f"/d/{path}?identifierType=alias", body)
    assert (answer.status_code, words in answer.json()["message"]) == (status, True), answer.content
    assert comments() == []


def test_an_update_that_comes_before_the_incident_is_answered_at_once(call: Caller) -> None:
    assert call("POST", "", {"message": "Disk  is slow", "alias": "d"}).status_code == 202
    at = "/d%s?identifierType=alias"
    assert call("PUT", at % "/message", {"message": "Disk is slow"}).status_code == 202
    assert call("PUT", at % "/message", {"message": "Disk is gone"}).status_code == 503
    follow_to_the_end(follower())
    call.done("PUT", at % "/message", {"message": "Disk is gone"})
    assert queries.get("1").incident.title == "Disk is gone"


def test_notes_are_listed_and_an_alert_is_found_by_its_tiny_id(call: Caller) -> None:
    request = call.done("POST", "", {"message": "Disk is slow", "alias": "d"})
    status = call("GET", f"/requests/{request}").json()["data"]
    assert (status["alias"], status["integrationId"]) == ("d", "genie")
    at = f"/{status['alertId'][:8]}/notes?identifierType=tiny"
    for text in ("first", "second"):
        call.done("POST", at, {"note": text})
    assert [one["note"] for one in call("GET", at).json()["data"]] == ["second", "first"]
    assert [one["note"] for one in call("GET", f"{at}&order=asc&limit=1").json()["data"]] == ["first"]
