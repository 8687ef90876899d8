"""Alerts that a person takes out of an incident, into one of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incidents.domain.incident import commands as c
from incidents.domain.incident.alerts import IncidentReference, Member
from incidents.domain.incident.decide import CommandRefusedError, decide
from incidents.domain.incident.state import Incident
from incidents.domain.values import InvalidValueError
from tests.unit.incidents.incident.cases import NOON, after, blamed, finding, opened, types

A, B, C = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "abc")
NEW_ID = "33333333-3333-4333-8333-333333333333"
NEW = IncidentReference(NEW_ID, 2, "Disk b is slow")


def with_alerts(*more: c.Command, first: c.Command | None = None) -> Incident:
    members = tuple(Member(one, f"Disk {one[0]} is slow", "warning") for one in (A, B, C))
    return after(first or opened(dedup_key="disks"), c.JoinAlerts(members, "the same rule"), *more)


def split_off(source: Incident, **more: object) -> c.OpenSplitOff:
    members = (Member(B, "Disk b is slow", "error"), Member(C, "Disk c is slow", "warning"))
    return replace(c.OpenSplitOff(NEW_ID, 2, source, members), **more)  # type: ignore[arg-type]


def test_the_new_ticket_has_the_alerts_and_stays_with_the_team() -> None:
    new = after(split_off(with_alerts()))
    assert (new.title, new.severity, new.team) == ("Disk b is slow", "error", "storage")
    assert (new.alerts, new.firing, new.state) == (2, 2, "open")
    assert new.dedup_key == f"incident:{NEW_ID}"


def test_alerts_that_rest_do_not_fire_in_it() -> None:
    new = after(split_off(with_alerts(), resolved=(C,)))
    assert (new.alerts, new.firing) == (2, 1)


def test_the_ticket_that_they_leave_counts_them_no_more() -> None:
    left = after(c.SplitAlertsOff((B, C), 1, NEW), state=with_alerts(c.ResolveAlerts((C,))))
    assert (left.alerts, left.firing) == (2, 1)


def test_what_is_worked_on_stays_in_work() -> None:
    source = with_alerts(c.Acknowledge())
    assert [event.type for event in decide(None, split_off(source), NOON)][-1] == "incident.acknowledged"
    assert after(split_off(source), actor="user:bob").owner == "bob"


def test_the_policy_of_a_route_does_not_follow_to_another_team() -> None:
    source = replace(with_alerts(), policy="storage-nights")
    assert after(split_off(source)).policy == "storage-nights"
    assert after(split_off(after(c.HandOver("network", "theirs"), state=source))).policy is None


def test_a_ticket_of_which_nothing_would_be_left_is_refused() -> None:
    only = after(c.ResolveAlerts((A,)), state=replace(with_alerts(), alerts=2))
    with pytest.raises(CommandRefusedError, match="nothing would be left"):
        types(only, c.SplitAlertsOff((B, C), 2, NEW))


def test_a_ticket_of_a_finding_may_lose_all_its_alerts() -> None:
    source = replace(with_alerts(first=blamed(finding())), alerts=2)
    assert types(source, c.SplitAlertsOff((B, C), 2, NEW)) == ["incident.alerts_moved"]


def test_a_resolved_ticket_loses_nothing() -> None:
    with pytest.raises(CommandRefusedError, match="is resolved"):
        types(with_alerts(c.Resolve("none")), c.SplitAlertsOff((B,), 1, NEW))


@pytest.mark.parametrize("wrong", [{"title": "x" * 301}, {"title": False}, {"title": []}, {"reason": 7}])
def test_a_title_and_a_reason_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidValueError):
        split_off(with_alerts(), **wrong)


def test_a_title_is_kept() -> None:
    assert after(split_off(with_alerts(), title="Rack r13")).title == "Rack r13"


def test_only_a_ticket_that_was_split_off_can_be_put_back() -> None:
    with pytest.raises(CommandRefusedError, match="was not split off"):
        types(with_alerts(), c.Undo("split_off"))
