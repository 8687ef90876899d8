"""Recorded alerts through other rules."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from incidents.domain.replay import Joined, RecordedInput, Replay, recorded_from, replay
from incidents.domain.routing.rules import Conditions, Grouping, RoutingTable, Rule, hours_from
from ingest.log import types
from tests.places import EVENTS
from tests.unit.incidents.incident.cases import NOON
from tests.unit.incidents.incident.test_grouping import reported
from tests.unit.incidents.routing.test_rules import NETWORK, ON_CALL, STORAGE, rule

NOW = RoutingTable([rule("disks", "disk/*", STORAGE)], ON_CALL)


def fired(key: str, minutes: int = 0, change: str = "fired", **more: Any) -> RecordedInput:
    at = NOON + timedelta(minutes=minutes)
    status = "resolved" if change == "resolved" else "firing"
    one = reported(key, change=change, status=status, **more)
    return RecordedInput("alert", one.alert, one.title, at, one.subject(at), one)


def replayed(recorded: Iterable[RecordedInput], *rules: Rule) -> Replay:
    """Each that begins to fire comes to an incident of its group."""
    told = [
        item for one in recorded for item in ((one, Joined([one.id], cause=False)) if one.routed else (one,))
    ]
    return replay(told, NOW, RoutingTable(rules, ON_CALL))


def test_what_was_held_back_or_joined_its_cause_asks_no_rule() -> None:
    told: list[RecordedInput | Joined] = [
        fired("a"),
        fired("b"),
        fired("c"),
        Joined(["a", "elsewhere"], cause=True),
        Joined(["b"], cause=False),
        fired("c", 1, "resolved"),
        fired("c", 2),
    ]
    found = replay(told, NOW, RoutingTable([rule("disks", "disk/*", NETWORK)], ON_CALL))
    assert (dict(found.looked_at), found.to_cause, found.suppressed, found.differ) == ({"alert": 4}, 1, 2, 1)
    assert (found.incidents_before, found.incidents_after) == (1, 1)


def test_the_same_rules_differ_in_nothing() -> None:
    told = replayed([fired("a"), fired("b", component="tor/t1")], *NOW.rules)
    assert (told.differ, told.differences, dict(told.looked_at)) == (0, (), {"alert": 2})


def test_what_would_go_to_another_team_is_counted_with_both_reasons() -> None:
    told = replayed([fired(key) for key in "abcde"], rule("disks", "disk/*", NETWORK))
    (difference,) = told.differences
    assert (difference.what, difference.before, difference.after, difference.count) == (
        "team",
        "storage",
        "network",
        5,
    )
    assert [one.id for one in difference.examples] == ["a", "b", "c"]
    assert difference.examples[0].after == "routed to Network because rule `disks` (1st) matched `disk/*`"


def test_one_that_differs_in_two_fields_counts_once() -> None:
    told = replayed([fired("a")], rule("disks", "disk/*", NETWORK, policy="night", severity="info"))
    assert (told.differ, [one.what for one in told.differences]) == (1, ["team", "severity", "policy"])


def test_an_alert_counts_as_often_as_it_began_to_fire() -> None:
    told = replayed(
        [fired("a"), fired("a", 1, "severity"), fired("a", 2, "resolved"), fired("a", 3)], *NOW.rules
    )
    assert (dict(told.looked_at), told.incidents_after) == ({"alert": 2}, 2)


def test_other_groups_make_more_or_fewer_tickets() -> None:
    racks = [fired(f"{n}", n, labels={"rack": f"r{n % 3}"}) for n in range(9)]
    told = replayed(racks, rule("disks", "disk/*", STORAGE, grouping=Grouping(("rack",))))
    assert (told.incidents_before, told.incidents_after) == (1, 3)


def test_a_storm_is_one_incident_as_it_is_live() -> None:
    racks = [fired(f"{n}", n // 100, labels={"rack": f"r{n}"}) for n in range(300)]
    by_rack = rule("disks", "disk/*", STORAGE, grouping=Grouping(("rack",)))
    told = replayed(racks, by_rack)
    assert (told.incidents_before, told.incidents_after) == (1, 101)
    slowly = [fired(f"{n}", n, labels={"rack": f"r{n}"}) for n in range(300)]
    assert replayed(slowly, by_rack).incidents_after == 300


def test_a_window_makes_a_ticket_for_each_of_its_lengths() -> None:
    half_hourly = [fired(f"{n}", 30 * n) for n in range(8)]
    window = Grouping(None, timedelta(hours=1))
    told = replayed(half_hourly, rule("disks", "disk/*", STORAGE, grouping=window))
    assert (told.incidents_before, told.incidents_after) == (1, 4)


def test_hours_are_those_in_which_it_was_recorded() -> None:
    night = Conditions(hours=hours_from("hours", ["18:00-06:00"], "UTC"))
    by_night = rule("night", "disk/*", NETWORK, when=night)
    told = replayed([fired("day"), fired("night", 10 * 60)], by_night, *NOW.rules)
    assert [(one.count, one.examples[0].id) for one in told.differences] == [(1, "night")]


def golden(type_: str, schema: int) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((EVENTS / f"{type_}.v{schema}.json").read_text())
    return types.upcast(type_, schema, body)


def test_a_finding_is_routed_by_its_analyzer_its_confidence_and_how_bad_it_is() -> None:
    for schema in (1, 2):
        recorded = recorded_from("incident.opened", golden("incident.opened", schema), NOON)
        assert recorded is not None
        subject = recorded.subject
        assert (recorded.kind, subject.analyzer, subject.confidence, subject.severity) == (
            "finding",
            "deepview",
            0.93,
            "error",
        )


def test_a_ticket_that_alerts_opened_is_not_routed_twice() -> None:
    opened = {**golden("incident.opened", 2), "finding": None, "why": "same key of the same integration"}
    assert recorded_from("incident.opened", opened, NOON) is None
    report = recorded_from("incident.opened", {**opened, "why": "opened by a report"}, NOON)
    assert report is not None
    assert report.kind == "report"


def test_an_alert_is_read_as_it_was_recorded() -> None:
    recorded = recorded_from("alert.reported", golden("alert.reported", 1), NOON)
    assert recorded is not None
    assert (recorded.subject.component, recorded.subject.integration, recorded.routed) == (
        "disk/node-7-sda",
        "prometheus",
        True,
    )
