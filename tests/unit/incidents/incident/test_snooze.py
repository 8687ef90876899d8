"""Incidents that are put aside, and what wakes them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from incidents.domain.incident import commands as c
from incidents.domain.incident.alerts import Member
from incidents.domain.incident.commands import Report
from incidents.domain.incident.decide import CommandRefusedError, decide
from incidents.domain.incident.state import Incident
from incidents.domain.values import InvalidValueError
from tests.unit.incidents.incident.cases import NOON, after, blamed, finding, opened, types

TWO = NOON + timedelta(hours=2)
ONE_MORE = c.JoinAlerts((Member("a-1", "Disk 8 is slow", "warning"),), "the same rule")
WORSE = c.RaiseSeverity("critical", "Disk 8 is gone")


def asleep(until: datetime | None = TWO, *before: c.Command) -> Incident:
    return after(opened(), *before, c.Snooze(until))


def test_a_snoozed_ticket_says_until_when_and_by_whom() -> None:
    incident = asleep()
    assert (incident.state, incident.snoozed_until, incident.snoozed_by) == ("snoozed", TWO, "alice")


@pytest.mark.parametrize("until", [NOON, NOON - timedelta(seconds=1), NOON + timedelta(days=31)])
def test_a_snooze_ends_in_the_next_thirty_days(until: datetime) -> None:
    with pytest.raises(InvalidValueError, match="until"):
        types(after(opened()), c.Snooze(until))


def test_a_snooze_until_the_same_time_makes_no_event() -> None:
    assert types(asleep(), c.Snooze(TWO)) == []


def test_a_snooze_is_lengthened() -> None:
    later = TWO + timedelta(hours=1)
    assert after(c.Snooze(later), state=asleep()).snoozed_until == later


@pytest.mark.parametrize(("now", "events"), [(TWO - timedelta(seconds=1), 0), (TWO, 1)])
def test_a_snooze_ends_when_its_time_has_come_and_not_before(now: datetime, events: int) -> None:
    assert len(decide(asleep(), c.Unsnooze(), now)) == events


def test_a_ticket_that_sleeps_until_it_changes_has_no_time_to_wake() -> None:
    assert decide(asleep(None), c.Unsnooze(), TWO + timedelta(days=300)) == []


def test_a_woken_ticket_waits_for_someone_and_keeps_its_owner() -> None:
    incident = after(c.Unsnooze(), state=asleep(TWO, c.Acknowledge()), now=TWO)
    assert (incident.state, incident.owner, incident.acknowledged_by) == ("open", "alice", None)


@pytest.mark.parametrize("until", [TWO, None])
def test_what_gets_worse_wakes_at_once(until: datetime | None) -> None:
    assert types(asleep(until), WORSE) == ["incident.severity_set", "incident.unsnoozed"]


@pytest.mark.parametrize(
    "change", [ONE_MORE, c.Join(Report("Again", dedup_key="k")), c.JoinFinding(finding())]
)
def test_a_change_wakes_what_sleeps_until_it_changes(change: c.Command) -> None:
    assert after(change, state=asleep(None, c.SetSeverity("info"))).state == "open"


@pytest.mark.parametrize(
    "change", [ONE_MORE, c.Join(Report("Again", dedup_key="k")), c.JoinFinding(finding())]
)
def test_what_joins_one_that_sleeps_until_a_time_is_kept_and_lets_it_sleep(change: c.Command) -> None:
    incident = after(change, state=asleep(TWO, c.SetSeverity("info")))
    assert (incident.state, incident.alerts + incident.findings) == ("snoozed", 1)


def test_another_blame_by_the_same_analyzer_is_no_change() -> None:
    sleeping = after(blamed(finding()), c.Snooze())
    again = finding(run="run-2", end=NOON + timedelta(minutes=5))
    assert after(c.JoinFinding(again), state=sleeping).state == "snoozed"


def test_the_first_blame_of_another_analyzer_is_a_change() -> None:
    sleeping = after(blamed(finding()), c.Snooze())
    assert after(c.JoinFinding(finding(run="run-2", analyzer="voting")), state=sleeping).state == "open"


def test_a_severity_that_a_person_sets_wakes_nothing() -> None:
    assert after(c.SetSeverity("critical"), state=asleep()).state == "snoozed"


@pytest.mark.parametrize("command", [c.Acknowledge(), c.HandOver("network", "theirs"), c.Resolve("none")])
def test_a_snooze_ends_when_somebody_takes_the_ticket_on(command: c.Command) -> None:
    incident = after(command, state=asleep())
    assert (incident.state != "snoozed", incident.snoozed_until, incident.snoozed_by) == (True, None, None)


@pytest.mark.parametrize(("before", "state"), [((), "open"), ((c.Acknowledge(),), "acknowledged")])
def test_an_undone_snooze_leaves_the_ticket_as_it_was(before: tuple[c.Command, ...], state: str) -> None:
    assert after(c.Undo(), state=asleep(TWO, *before)).state == state


def test_undo_takes_back_what_was_done_last() -> None:
    incident = after(opened(), c.HandOver("network", "theirs"), c.Snooze(TWO))
    woken = after(c.Undo(), state=incident)
    assert (woken.state, woken.team) == ("open", "network")
    assert after(c.Undo(), state=woken).team == "storage"


def test_undoing_a_snooze_that_is_over_is_refused() -> None:
    with pytest.raises(CommandRefusedError, match="is not snoozed, it is open"):
        types(after(opened()), c.Undo("snooze"))


def test_a_resolved_ticket_is_not_snoozed() -> None:
    with pytest.raises(CommandRefusedError, match="resolved, by alice at"):
        types(after(opened(), c.Resolve("none")), c.Snooze(TWO))
