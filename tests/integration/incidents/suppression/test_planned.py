"""Planned suppression of alerts: inhibition rules and maintenance windows."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from incidents import queries, timers
from incidents.suppression.models import InhibitingAlert, InhibitionRule, MaintenanceWindow
from incidents.suppression.suppressor import firing_suppressed
from incidents.teams.models import Service
from incidents.timers import OF_INCIDENTS
from ingest.api import keys
from ingest.queries import configured
from tests.integration.incidents.alerts.test_correlate import alert, send, texts, ticket, tickets
from tests.integration.incidents.incident.test_findings import run, suspect

pytestmark = pytest.mark.usefixtures("log_database")
HOUR = timedelta(hours=1)
RULE = {
    "slug": "cluster-down",
    "source_matchers": ['alertname="ClusterDown"'],
    "target_matchers": ['severity=~"warning|info"'],
    "equal": ["cluster"],
}
_numbers = itertools.count()


def call(method: str, path: str, body: Any = None, scope: str = "admin") -> Any:
    key = keys.create(f"key {next(_numbers)}", [scope, "incidents:read"])
    given = () if body is None else (body,)
    client = Client(headers={"Authorization": f"Bearer {key}"})
    return getattr(client, method)(f"/api/v1/{path}", *given, content_type="application/json")


def window(**more: Any) -> dict[str, Any]:
    now = timezone.now()
    told = {
        "slug": "row-3",
        "reason": "new firmware",
        "components": ["tor/r3-*"],
        "starts_at": (now - HOUR).isoformat(),
        "ends_at": (now + HOUR).isoformat(),
    }
    return {**told, **more}


def later(at: datetime) -> int:
    return OF_INCIDENTS["suppressed alerts"](at)


def time_passes(at: datetime) -> int:
    return sum(do(at) for do in OF_INCIDENTS.values())


def held() -> list[str]:
    return sorted(firing_suppressed().values_list("why", flat=True))


def down(status: str = "firing") -> Any:
    labels = {"alertname": "ClusterDown", "cluster": "a", "severity": "critical"}
    return alert("down", status, group="ClusterDown", labels=labels)


def slow(key: str = "s1", cluster: str = "a") -> Any:
    return alert(key, labels={"severity": "warning", "cluster": cluster})


# Inhibition
# ----------------------------------------------------------------------------------------------------------
def test_a_target_calls_nobody_while_its_source_fires_and_says_why() -> None:
    assert call("post", "inhibitions", RULE).status_code == 201
    send(down())
    send(slow(), slow("s2", "b"))
    assert held() == ["inhibited by the rule cluster-down while “down is slow” fires for the same cluster"]
    assert sorted(one.incident.title for one in tickets()) == ["down is slow", "s2 is slow"]


def test_a_source_in_the_same_delivery_inhibits_too() -> None:
    call("post", "inhibitions", RULE)
    send(slow(), down())
    assert [one.incident.title for one in tickets()] == ["down is slow"]


def test_a_target_gets_its_ticket_once_its_source_is_over() -> None:
    call("post", "inhibitions", RULE)
    send(down(), slow())
    assert later(timezone.now()) == 0
    send(down("resolved"))
    assert later(timezone.now()) == 1
    assert [one.incident.title for one in tickets("open")] == ["s1 is slow"]


def test_a_new_rule_knows_what_fires_already() -> None:
    send(down())
    call("post", "inhibitions", RULE)
    send(slow())
    assert len(held()) == 1


def test_a_changed_rule_lets_go_what_it_holds_no_more() -> None:
    call("post", "inhibitions", RULE)
    send(down(), slow())
    assert (
        call("patch", "inhibitions/cluster-down", {"target_matchers": ['severity="info"']}).status_code == 200
    )
    assert later(timezone.now()) == 1
    assert held() == []


def test_a_rule_that_is_removed_lets_go_all() -> None:
    call("post", "inhibitions", RULE)
    send(down(), slow())
    assert call("delete", "inhibitions/cluster-down").status_code == 204
    assert not InhibitingAlert.objects.exists()
    assert later(timezone.now()) == 1


def test_rules_are_recorded_and_told_as_they_are_written() -> None:
    call("post", "inhibitions", RULE)
    told = call("get", "inhibitions/cluster-down").json()
    assert told.pop("problem") is None
    assert told == {**RULE, "comment": ""}
    assert configured("inhibition", "cluster-down")[0].body["after"] == told


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"source_matchers": []}, "at least one"),
        ({"source_matchers": ["x"]}, "such as"),
        ({"target_matchers": ['a=~".*"']}, "must not match"),
        ({"target_matchers": 'a="b"'}, "list"),
        ({"target_matchers": ['a=~"("']}, "RE2"),
        ({"equal": ["a", "a"]}, "twice"),
        ({"comment": "\0"}, ""),
        ({"slug": "no slug"}, "slug"),
        ({"more": 1}, "not a field"),
    ],
)
def test_a_bad_rule_is_refused_by_field(change: dict[str, Any], says: str) -> None:
    answer = call("post", "inhibitions", {**RULE, **change})
    assert answer.status_code == 400
    assert next(iter(change)) in str(answer.json()["errors"])
    assert says in str(answer.json()["errors"])


def test_alertmanagers_api_tells_what_is_inhibited_and_what_is_muted() -> None:
    call("post", "inhibitions", RULE)
    call("post", "maintenance", window())
    send(down(), slow(), alert("a", component="tor/r3-1"))
    key = keys.create("amtool", ["incidents:read"])
    client = Client(headers={"Authorization": f"Bearer {key}"})
    told = {one["annotations"]["summary"]: one["status"] for one in client.get("/api/v2/alerts").json()}
    assert {title: status["state"] for title, status in told.items()} == {
        "down is slow": "active",
        "s1 is slow": "suppressed",
        "a is slow": "suppressed",
    }
    assert len(told["s1 is slow"]["inhibitedBy"]) == 1
    assert told["a is slow"]["mutedBy"] == ["row-3"]
    left = client.get("/api/v2/alerts", {"inhibited": "false"}).json()
    assert sorted(one["annotations"]["summary"] for one in left) == ["a is slow", "down is slow"]


# Maintenance
# ----------------------------------------------------------------------------------------------------------
def test_alerts_on_what_is_worked_on_call_nobody_until_it_ends() -> None:
    assert call("post", "maintenance", window()).status_code == 201
    send(alert("a", component="tor/r3-1"), alert("b", component="tor/r4-1"))
    assert [one.incident.component for one in tickets()] == ["tor/r4-1"]
    assert held()[0].startswith("in the maintenance window row-3 until")
    assert later(timezone.now()) == 0
    assert later(timezone.now() + 2 * HOUR) == 1
    assert held() == []


def test_a_window_by_labels_holds_what_every_matcher_fits() -> None:
    call("post", "maintenance", window(components=[], matchers=['env="test"', 'disk=~"d.*"']))
    send(alert("a", labels={"env": "test", "disk": "d1"}), alert("b", group="", labels={"env": "test"}))
    assert [one.incident.title for one in tickets()] == ["b is slow"]


def test_a_window_covers_what_belongs_to_a_service() -> None:
    Service.objects.create(slug="fabric", name="Fabric", patterns=["spine/*", "tor/*"])
    assert call("post", "maintenance", window(components=[], services=["fabric"])).status_code == 201
    send(alert("a", component="spine/1"), alert("b", component="disk/1"))
    assert [one.incident.component for one in tickets()] == ["disk/1"]
    Service.objects.all().delete()
    send(alert("c", component="spine/2", group="Other"), alert("d", group="No component"))
    assert len(tickets()) == 3


def test_in_a_quiet_window_tickets_sleep_until_it_ends() -> None:
    call("post", "maintenance", window(mode="quiet"))
    send(alert("a", component="tor/r3-1"))
    one = ticket().incident
    assert (one.state, one.snoozed_by) == ("snoozed", "system:incidents")
    assert "in the maintenance window row-3" in texts()[-1]
    OF_INCIDENTS["due snoozes"](timezone.now() + 2 * HOUR)
    assert ticket().incident.state == "open"


def test_a_quiet_window_that_is_removed_wakes_the_tickets_that_sleep_for_it() -> None:
    call("post", "maintenance", window(mode="quiet"))
    send(alert("a", component="tor/r3-1"))
    assert time_passes(timezone.now()) == 0
    call("delete", "maintenance/row-3")
    assert time_passes(timezone.now()) == 1
    assert (ticket().incident.state, texts()[-1]) == (
        "open",
        "Notifications resumed: no longer suppressed",
    )


def test_tickets_that_sleep_on_keep_none_asleep_whose_work_was_called_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timers, "SNOOZES_AT_ONCE", 1)
    for row in ("row-3", "row-4"):
        call("post", "maintenance", window(mode="quiet", slug=row, components=[f"tor/r{row[-1]}-*"]))
    send(alert("a", component="tor/r3-1"), alert("b", component="tor/r4-1", group="Other"))
    call("patch", "maintenance/row-3", {"ends_at": (timezone.now() + HOUR / 2).isoformat()})
    call("delete", "maintenance/row-4")
    assert time_passes(timezone.now()) == 1
    assert [ticket(number).incident.state for number in (1, 2)] == ["snoozed", "open"]


def test_a_quiet_window_that_ends_earlier_by_now_lets_sleep_until_it_does() -> None:
    call("post", "maintenance", window(mode="quiet"))
    send(alert("a", component="tor/r3-1"))
    sooner = timezone.now() + HOUR / 2
    call("patch", "maintenance/row-3", {"ends_at": sooner.isoformat()})
    assert time_passes(timezone.now()) == 0
    assert time_passes(sooner) == 1


def test_a_long_reason_of_planned_work_keeps_no_ticket_from_opening() -> None:
    assert call("post", "maintenance", window(mode="quiet", reason="new firmware " * 150)).status_code == 201
    send(alert("a", component="tor/r3-1"))
    assert ticket().incident.state == "snoozed"


def test_what_else_joins_a_ticket_that_sleeps_for_planned_work_wakes_it() -> None:
    call("post", "maintenance", window(mode="quiet"))
    send(alert("a", component="tor/r3-1"))
    send(alert("b", component="tor/r4-1"))
    assert ticket().incident.state == "open"


def test_a_finding_at_what_is_worked_on_is_told_so_once() -> None:
    call("post", "maintenance", window())
    run(0, suspect("tor/r3-1", sure=True))
    run(5, suspect("tor/r3-1", sure=True))
    assert len([text for text in texts() if "maintenance at tor/r3-1" in text]) == 1


def test_a_window_that_is_removed_lets_go_what_it_holds() -> None:
    call("post", "maintenance", window())
    send(alert("a", component="tor/r3-1"))
    assert call("delete", "maintenance/row-3").status_code == 204
    assert later(timezone.now()) == 1


def test_a_window_that_recurs_holds_in_each_of_its_times_only() -> None:
    start = timezone.now() - timedelta(days=9, hours=1)
    call(
        "post",
        "maintenance",
        window(
            starts_at=start.isoformat(),
            ends_at=(start + 2 * HOUR).isoformat(),
            rule="FREQ=DAILY;INTERVAL=3",
            time_zone="Asia/Kolkata",
        ),
    )
    send(alert("a", component="tor/r3-1"))
    assert len(held()) == 1
    assert later(timezone.now() + 2 * HOUR) == 1


def test_windows_are_recorded_without_how_they_stand() -> None:
    assert call("post", "maintenance", window()).json()["state"] == "active"
    assert "state" not in configured("maintenance", "row-3")[0].body["after"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"components": []}, "are required"),
        ({"components": ["*"]}, "every component"),
        ({"matchers": ["x"]}, "such as"),
        ({"services": ["none"]}, "no service"),
        ({"services": [7, {}]}, ""),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "later"),
        ({"starts_at": "0001-01-01T00:00:00Z"}, "years"),
        ({"ends_at": "9999-12-31T23:59:59Z"}, "years"),
        ({"rule": "FREQ=SECONDLY"}, "FREQ"),
        ({"time_zone": "Mars/Olympus"}, "not a time zone"),
        ({"mode": "loud"}, "loud"),
        ({"reason": " "}, "blank"),
    ],
)
def test_a_bad_window_is_refused_by_field(change: dict[str, Any], says: str) -> None:
    answer = call("post", "maintenance", window(**change))
    assert answer.status_code == 400
    assert says in str(answer.json()["errors"])
    assert not MaintenanceWindow.objects.exists()


# What cannot be read any more
# ----------------------------------------------------------------------------------------------------------
BROKEN: tuple[Any, ...] = (
    [{"name": "disk"}, 7],
    {"name": "disk"},
    [{"name": "disk", "value": "(", "isRegex": True, "isEqual": True}],
    "disk=d1",
)


@pytest.mark.parametrize("matchers", BROKEN)
def test_rules_and_windows_that_cannot_be_read_hold_nothing_and_say_why(matchers: Any) -> None:
    call("post", "inhibitions", RULE)
    call("post", "maintenance", window())
    call("post", "maintenance", window(slug="row-4", components=["tor/r4-*"]))
    InhibitionRule.objects.update(target_matchers=matchers)
    MaintenanceWindow.objects.filter(slug="row-3").update(matchers=matchers)
    send(down(), alert("a", component="tor/r3-1"), slow(), alert("b", component="tor/r4-1"))
    assert [why for why in held() if not why.startswith("in the maintenance window row-4")] == []
    assert len(tickets()) == 3
    says = "the maintenance window `row-3` (and 1 other) had no effect because of an error: matchers"
    for view in tickets():
        number = str(view.incident.number)
        (member,) = queries.members(number)[0]
        assert says in queries.why_members(number, [member.id])[member.id]
    for kind in ("maintenance", "inhibitions"):
        told = call("get", kind).json()["results"]
        assert next(one["problem"] for one in told if one["problem"]).startswith("matchers")
    states = {one["slug"]: one["state"] for one in call("get", "maintenance").json()["results"]}
    assert states == {"row-3": "unreadable", "row-4": "active"}


def test_a_window_whose_time_zone_is_no_more_holds_nothing() -> None:
    call("post", "maintenance", window())
    MaintenanceWindow.objects.update(rule="FREQ=DAILY", time_zone="Mars/Olympus")
    send(alert("a", component="tor/r3-1"))
    assert len(tickets()) == 1
    (told,) = call("get", "maintenance").json()["results"]
    assert "time zone" in told["problem"]
    assert told["next_starts_at"] is None
