"""Alert rules: what became of their incidents, and what a change of one would have done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from incidents.domain.alert_rules import (
    Effect,
    Note,
    Past,
    Proposals,
    Rule,
    RuleUse,
    needs_proposal,
    note_of,
    past_of,
    proposals,
    quieter,
    uses,
    with_longer_firing,
    with_lower_urgency,
    with_wait,
    without_paging,
)

START = datetime(2026, 3, 25, 12, tzinfo=UTC)
END = START + timedelta(days=7)
RULE = Rule("prometheus", "DiskSlow")
BERLIN = ZoneInfo("Europe/Berlin")


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


class Log:
    """Notes as the log would have them, in order of time."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.number = 0

    def add(
        self,
        stream: str,
        kind: str,
        minute: float,
        body: Mapping[str, Any] | None = None,
        actor: str = "system:x",
    ) -> None:
        self.notes.append(Note(stream, kind, at(minute), actor, body or {}))

    def alert(
        self,
        minute: float,
        fired: bool = True,
        alert: str = "a1",
        name: str = "DiskSlow",
        component: str | None = None,
    ) -> None:
        body = {"alert": alert, "fired": fired, "integration": "prometheus", "name": name, "labelled": True}
        body["component"] = component
        self.add(f"alert/{alert}", "alert.reported", minute, body)

    def opened(self, minute: float, *alerts: str, found: bool = False) -> str:
        self.number += 1
        stream = f"incident/{self.number}"
        self.add(stream, "incident.opened", minute, {"number": self.number, "title": "t", "found": found})
        self.add(stream, "incident.alerts_joined", minute, {"alerts": list(alerts or ("a1",))})
        return stream

    def called(self, stream: str, minute: float, person: str = "alice") -> None:
        body = {"person": person, "notification": f"{stream} {minute} {person}"}
        self.add(stream, "incident.notified", minute, body)

    def resolved(self, stream: str, minute: float, cause: str | None = None, actor: str = "system:x") -> None:
        self.add(stream, "incident.resolved", minute, {"confirmed_cause": cause}, actor)

    def fleeting(self, minute: float, lasts: float = 3, called: int = 1) -> str:
        """A firing, its incident with calls, and its end by itself."""
        self.alert(minute)
        stream = self.opened(minute)
        for place in range(called):
            self.called(stream, minute + place / 10)
        self.alert(minute + lasts, fired=False)
        self.resolved(stream, minute + lasts)
        return stream

    def repaired(self, minute: float, lasts: float = 90) -> str:
        """One on which a person acted."""
        self.alert(minute)
        stream = self.opened(minute)
        self.called(stream, minute)
        self.add(stream, "incident.commented", minute + 1, actor="user:alice")
        self.alert(minute + lasts, fired=False)
        self.resolved(stream, minute + lasts)
        return stream

    @property
    def past(self) -> Past:
        return past_of(sorted(self.notes, key=lambda note: note.at))

    @property
    def use(self) -> RuleUse:
        (found,) = uses(self.past, START, END)
        return found

    @property
    def proposals(self) -> Proposals:
        return proposals(self.past, self.use, {})


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.mark.parametrize(
    ("kind", "actor", "outcome"),
    [
        ("incident.commented", "user:alice", "acted"),
        ("incident.reassigned", "user:alice", "acted"),
        ("incident.remediation_requested", "user:alice", "acted"),
        ("incident.acknowledged", "user:alice", "ignored"),
        ("incident.reassigned", "system:incidents", "ignored"),
        ("incident.commented", "key:bot", "ignored"),
    ],
)
def test_an_incident_is_acted_on_by_what_a_person_did_beyond_acknowledging(
    log: Log, kind: str, actor: str, outcome: str
) -> None:
    stream = log.fleeting(0)
    log.add(stream, kind, 1, actor=actor)
    assert [one.outcome for one in log.past.incidents] == [outcome]


@pytest.mark.parametrize(
    ("cause", "actor", "outcome"),
    [
        ("disk/7", "user:alice", "acted"),
        ("none", "user:alice", "false_alarm"),
        (None, "system:x", "uncalled"),
    ],
)
def test_a_resolution_with_a_cause_is_an_action_and_one_without_a_fault_a_false_alarm(
    log: Log, cause: str | None, actor: str, outcome: str
) -> None:
    log.alert(0)
    log.resolved(log.opened(0), 9, cause, actor)
    assert log.past.incidents[0].outcome == outcome


def test_a_rule_that_called_nobody_is_quiet_and_wastes_nothing(log: Log) -> None:
    log.fleeting(0, called=0)
    assert (log.use.verdict, log.use.uncalled, log.use.wasted, needs_proposal(log.use)) == (
        "quiet",
        1,
        0,
        False,
    )


def test_an_open_incident_is_not_judged(log: Log) -> None:
    log.alert(0)
    log.called(log.opened(0), 0)
    assert (log.use.verdict, log.use.open, log.use.ignored) == ("open", 1, 0)


def test_figures_of_a_rule_are_those_of_its_period(log: Log) -> None:
    log.fleeting(-60)
    log.fleeting(0, called=2)
    log.repaired(100)
    use = log.use
    assert (use.firings, use.alerts, use.incidents, use.calls, use.wasted) == (2, 1, 2, 3, 2)
    assert (use.acted, use.ignored, use.verdict) == (1, 1, "useful")


def test_five_firings_of_an_alert_within_an_incident_are_flapping(log: Log) -> None:
    for minute in (0, 2, 4, 6, 8):
        log.alert(minute)
        log.alert(minute + 1, fired=False)
    stream = log.opened(0.1)
    log.resolved(stream, 11)
    assert (log.use.flapped, log.use.verdict) == (1, "flapping")


def test_five_short_incidents_of_an_alert_within_an_hour_flapped_each(log: Log) -> None:
    for minute in (0, 14, 28, 42, 56, 400, 416, 432, 448, 464):
        log.fleeting(minute)
    assert [one.flapped for one in log.past.incidents] == [True] * 5 + [False] * 5
    assert (log.use.flapped, log.use.verdict) == (5, "flapping")


def test_short_incidents_of_different_alerts_did_not_flap(log: Log) -> None:
    for minute, alert in ((0, "a1"), (10, "a2"), (20, "a3"), (30, "a4"), (40, "a5")):
        log.alert(minute, alert=alert)
        stream = log.opened(minute, alert)
        log.alert(minute + 3, fired=False, alert=alert)
        log.resolved(stream, minute + 3)
    assert (log.use.flapped, log.use.incidents) == (0, 5)


def test_an_incident_that_an_alert_reopened_flapped_and_one_that_a_person_reopened_did_not(log: Log) -> None:
    for minute, actor in ((0, "system:incidents"), (100, "user:alice")):
        stream = log.fleeting(minute)
        log.add(stream, "incident.reopened", minute + 10, actor=actor)
    assert [one.flapped for one in log.past.incidents] == [True, False]


def test_an_incident_of_a_finding_is_of_no_rule(log: Log) -> None:
    log.alert(0)
    log.opened(0, found=True)
    assert log.past.incidents == []


def test_an_incident_counts_for_each_rule_that_opened_it_and_not_for_one_that_joined(log: Log) -> None:
    log.alert(0)
    log.alert(0, alert="b1", name="Latency")
    log.alert(0, alert="c1", name="Late")
    stream = log.opened(0, "a1", "b1")
    log.add(stream, "incident.alerts_joined", 1, {"alerts": ["c1"]})
    assert {one.rule.name: one.incidents for one in uses(log.past, START, END)} == {
        "DiskSlow": 1,
        "Latency": 1,
        "Late": 0,
    }


def test_a_longer_wait_spares_short_firings_and_delays_the_others(log: Log) -> None:
    for minute in (0, 100, 200):
        log.fleeting(minute)
    log.repaired(300)
    assert with_wait(log.past, RULE, timedelta(minutes=10)) == Effect(4, 1, 1, 10, 0, 1)


def test_a_wait_longer_than_a_real_failure_misses_it(log: Log) -> None:
    log.repaired(0, lasts=20)
    assert with_wait(log.past, RULE, timedelta(minutes=30)) == Effect(1, 0, 0, None, 1, 1)


def test_a_firing_that_goes_on_survives_every_wait(log: Log) -> None:
    log.alert(0)
    log.called(log.opened(0), 0)
    assert with_wait(log.past, RULE, timedelta(hours=1)).fewer == 0


def test_an_incident_that_another_rule_opened_too_stays(log: Log) -> None:
    log.alert(0)
    log.alert(0, alert="b1", name="Latency")
    stream = log.opened(0, "a1", "b1")
    log.called(stream, 0)
    log.alert(1, fired=False)
    log.resolved(stream, 5)
    assert with_wait(log.past, RULE, timedelta(minutes=5)).fewer == 0
    assert without_paging(log.past.of(RULE), RULE, None).fewer == 0


def test_longer_firing_joins_what_comes_back_within_its_time(log: Log) -> None:
    for minute in (0, 10, 20, 200):
        log.fleeting(minute)
    assert with_longer_firing(log.past, RULE, timedelta(minutes=10)) == Effect(4, 2, 0, None, 0, 0)
    assert with_longer_firing(log.past, RULE, timedelta(minutes=5)).fewer == 0


def test_longer_firing_misses_what_joins_an_incident_that_called_nobody(log: Log) -> None:
    log.fleeting(0, called=0)
    log.repaired(10)
    assert with_longer_firing(log.past, RULE, timedelta(minutes=10)).missed == 1


def test_another_alert_of_the_rule_does_not_join(log: Log) -> None:
    log.fleeting(0)
    log.alert(5, alert="a2")
    log.called(log.opened(5, "a2"), 5)
    assert with_longer_firing(log.past, RULE, timedelta(minutes=10)).fewer == 0


def test_lower_urgency_lets_calls_of_the_night_wait_and_drops_what_is_over(log: Log) -> None:
    night = 12 * 60  # 01:00 in Berlin
    log.fleeting(night)
    log.repaired(night + 60, lasts=600)  # 02:00, until 12:00
    log.repaired(night + 1200)  # 21:00
    found = with_lower_urgency(log.past.of(RULE), RULE, {"alice": BERLIN}, ZoneInfo("UTC"))
    assert found == Effect(3, 2, 1, 300, 0, 2)


def test_a_night_call_that_people_acted_on_and_that_was_over_by_morning_is_missed(log: Log) -> None:
    log.repaired(12 * 60)
    assert with_lower_urgency(log.past.of(RULE), RULE, {"alice": BERLIN}, BERLIN).missed == 1


def test_the_shortest_wait_that_spares_half_of_the_wasted_calls_is_proposed(log: Log) -> None:
    for minute in range(0, 1500, 300):
        log.fleeting(minute, lasts=8)
    log.repaired(2000)
    best = log.proposals.best
    assert best is not None
    assert (best.kind, best.minutes, best.effect.fewer, best.effect.missed) == ("for", 10, 5, 0)


def test_a_rule_that_nobody_ever_looked_at_may_be_deleted(log: Log) -> None:
    for minute in range(0, 1500, 300):
        log.fleeting(minute, lasts=200)
    best = log.proposals.best
    assert best is not None
    assert (best.kind, best.effect.fewer, best.effect.acted) == ("delete", 5, 0)


def test_a_rule_that_was_acknowledged_is_to_call_nobody_and_stays(log: Log) -> None:
    for minute in range(0, 1500, 300):
        log.add(log.fleeting(minute, lasts=200), "incident.acknowledged", minute + 1, actor="user:alice")
    best = log.proposals.best
    assert best is not None
    assert best.kind == "no_paging"


def test_no_change_is_best_where_each_would_miss_what_people_acted_on(log: Log) -> None:
    for minute in (0, 100):
        log.repaired(minute, lasts=3)
    log.fleeting(200, called=5)
    found = log.proposals
    assert found.best is None
    assert all(one.effect.missed for one in found.others)


def test_calls_of_the_replay_replace_those_of_the_log(log: Log) -> None:
    log.fleeting(0)
    assert without_paging(log.past.of(RULE), RULE, (7, 2)).fewer == 5


# Notes
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Event:
    type: str
    body: Mapping[str, Any]
    stream: str = "incident/1"
    actor: str = "system:x"
    occurred_at: datetime = START


def reported(change: str = "fired", labels: Mapping[str, str] | None = None, group: str = "G") -> Note | None:
    body = {
        "alert": "a1",
        "change": change,
        "integration": "nagios",
        "title": "T",
        "group": group,
        "labels": labels or {},
    }
    return note_of(Event("alert.reported", body))


@pytest.mark.parametrize(
    ("labels", "group", "name"),
    [({"alertname": "Disk"}, "G", "Disk"), ({}, "G", "G"), ({}, "", "T")],
)
def test_a_rule_is_named_by_alertname_else_group_else_title(
    labels: dict[str, str], group: str, name: str
) -> None:
    note = reported(labels=labels, group=group)
    assert note is not None
    assert note.body["name"] == name


def test_a_change_of_severity_is_no_firing() -> None:
    assert reported("severity") is None


@pytest.mark.parametrize(
    "body",
    [
        {"person": None, "outcome": "sent", "notification": "k"},
        {"person": "alice", "outcome": "failed", "notification": "k"},
        {"person": "alice", "outcome": "sent", "notification": "over:1"},
    ],
)
def test_what_reached_no_person_is_no_call(body: Mapping[str, Any]) -> None:
    assert note_of(Event("incident.notified", body)) is None


def firing(log: Log, minute: float, lasts: float, alert: str = "a1", **other: str) -> None:
    log.alert(minute, alert=alert, **other)  # type: ignore[arg-type]
    log.alert(minute + lasts, fired=False, alert=alert, **other)


def quieted(log: Log) -> tuple[str, int | None, int, int] | None:
    log.notes.sort(key=lambda note: note.at)
    found = quieter(past_of(log.notes), RULE)
    return None if found is None else (found.proposal.kind, found.proposal.minutes, found.fired, found.fires)


def test_brief_firings_are_spared_by_the_shortest_wait_that_spares_half() -> None:
    log = Log()
    for place in range(6):
        firing(log, 100 * place, 7 if place < 4 else 90)
    assert quieted(log) == ("for", 10, 6, 2)


def test_a_wait_that_misses_what_people_acted_on_is_not_proposed() -> None:
    log = Log()
    for place in range(4):
        stream = log.fleeting(200 * place)
        log.add(stream, "incident.commented", 200 * place + 1, actor="user:alice")
    assert quieted(log) is None


def test_an_alert_that_comes_back_soon_goes_on_firing() -> None:
    log = Log()
    for place in range(6):
        firing(log, 70 * place, 62)
    assert quieted(log) == ("keep_firing_for", 10, 6, 1)


def test_a_rule_that_fires_under_another_on_its_component_is_inhibited_by_it() -> None:
    log = Log()
    for place in range(4):
        start = 1000.0 * place
        if place < 3:
            firing(log, start - 1, 300, "top", name="HostDown", component="host/a")
        firing(log, start - 1, 300, "far", name="HostDown2", component="host/b")
        firing(log, start, 200, component="host/a")
    assert quieted(log) == ("inhibit", None, 4, 1)
    found = quieter(past_of(log.notes), RULE)
    assert found is not None
    assert found.proposal.by == Rule("prometheus", "HostDown")


def test_inhibition_spares_the_calls_of_incidents_that_are_wholly_covered() -> None:
    log = Log()
    firing(log, 0, 500, "top", name="HostDown", component="host/a")
    for start in (10, 100, 900):
        firing(log, start, 61, component="host/a")
        stream = log.opened(start)
        log.called(stream, start)
        log.resolved(stream, start + 61)
    log.notes.sort(key=lambda note: note.at)
    found = quieter(past_of(log.notes), RULE)
    assert found is not None
    effect = found.proposal.effect
    assert (found.proposal.kind, effect.calls_before, effect.calls_after, effect.missed) == (
        "inhibit",
        3,
        1,
        0,
    )


def test_a_rule_on_which_nobody_acts_calls_nobody_where_nothing_else_helps() -> None:
    log = Log()
    for place in range(3):
        firing(log, 500 * place, 200)
        stream = log.opened(500 * place)
        log.called(stream, 500 * place)
        log.resolved(stream, 500 * place + 200)
    assert quieted(log) == ("no_paging", None, 3, 3)
