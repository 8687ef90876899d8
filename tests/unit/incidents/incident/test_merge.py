"""Two incidents made one, and taken apart."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from incidents.domain.incident import commands as c
from incidents.domain.incident.alerts import Member
from incidents.domain.incident.decide import CommandRefusedError
from incidents.domain.incident.finding import JoinOpen, OpenNew, place
from incidents.domain.incident.state import Incident
from tests.unit.incidents.incident.cases import NOON, after, blamed, finding, opened, types

A, B = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
SOURCE_ID = "22222222-2222-4222-8222-222222222222"


def other(*commands: c.Command, first: c.Command | None = None) -> Incident:
    """A second incident, #2."""
    return replace(after(first or opened(title="Disks of s7"), *commands), id=SOURCE_ID, number=2)


def firing(*alerts: str) -> c.JoinAlerts:
    return c.JoinAlerts(tuple(Member(alert, "slow", "warning") for alert in alerts), "the same rule")


def taken_in(source: Incident, *alerts: str, target: Incident | None = None) -> Incident:
    return after(c.Absorb(source, alerts), state=target or after(opened()))


def test_a_merged_ticket_points_to_its_target_and_is_worked_on_no_more() -> None:
    merged = after(c.MergeInto(after(opened())), state=other())
    assert (merged.state, merged.merged_number, merged.confirmed_cause) == ("resolved", 1, None)


@pytest.mark.parametrize(
    "command",
    [
        c.Acknowledge(),
        c.Assign("bob"),
        c.Resolve("none"),
        c.Reopen(),
        c.Snooze(),
        c.MergeInto(after(opened())),
    ],
)
def test_work_on_a_merged_ticket_is_refused_with_where_to_go(command: c.Command) -> None:
    merged = after(c.MergeInto(after(opened())), state=other())
    with pytest.raises(
        CommandRefusedError,
        match="#2 was merged into #1, by alice at 2026-11-21T12:00:00Z; use that incident",
    ):
        types(merged, command)


def test_a_target_counts_what_the_merged_ticket_brought() -> None:
    source = other(firing(A, B), first=blamed(finding()))
    target = taken_in(source, A, target=after(opened(), firing(B)))
    assert (target.alerts, target.firing, target.findings) == (3, 2, 1)


def test_a_worse_ticket_makes_its_target_worse() -> None:
    assert taken_in(other(c.SetSeverity("critical"))).severity == "critical"


def test_a_target_whose_severity_a_person_set_keeps_it() -> None:
    target = after(opened(), c.SetSeverity("info"))
    assert taken_in(other(c.SetSeverity("critical")), target=target).severity == "info"


def test_nothing_is_merged_into_a_resolved_ticket() -> None:
    with pytest.raises(CommandRefusedError, match="#1 is resolved"):
        types(after(opened(), c.Resolve("none")), c.Absorb(other(), ()))


def test_a_finding_on_the_cause_of_a_merged_ticket_joins_its_target() -> None:
    source = other(first=blamed(finding()))
    target = taken_in(source, target=after(opened(component="tor/t1")))
    merged = after(c.MergeInto(target), state=source)
    assert place(finding(run="run-2"), [merged, target], []) == JoinOpen(target)


def test_a_finding_prefers_the_ticket_of_its_own_cause_to_one_that_took_another_in() -> None:
    target = taken_in(other(first=blamed(finding())), target=after(opened(component="tor/t1")))
    own = replace(after(blamed(finding(), number=9)), id=B)
    assert place(finding(run="run-2"), [target, own], []) == JoinOpen(own)


def test_a_finding_of_a_merged_cause_blames_and_leaves_component_and_verdict() -> None:
    target = taken_in(other(first=blamed(finding())), target=after(opened(component="tor/t1")))
    later = after(c.JoinFinding(finding(run="run-2", score=0.99)), state=target)
    assert (later.component, later.verdict, later.opinions["deepview"].stance) == ("tor/t1", None, "blames")


def test_a_finding_after_the_target_was_resolved_is_a_new_matter() -> None:
    source = other(first=blamed(finding()))
    target = taken_in(source, target=after(opened(component="tor/t1")))
    resolved = after(c.Resolve("tor/t1"), state=target)
    merged = after(c.MergeInto(target), state=source)
    later = finding(run="run-9", end=NOON + timedelta(hours=3), sure=True)
    assert isinstance(place(later, [merged, resolved], []), OpenNew)


def test_what_only_alerts_made_is_over_with_them_also_when_merged() -> None:
    target = taken_in(other(firing(A)), A, target=after(opened(), firing(B)))
    over = after(c.ResolveAlerts((A, B)), state=target)
    assert types(over, c.AutoResolve("all over")) == ["incident.resolved"]


def test_a_ticket_that_took_a_persons_report_in_waits_for_a_person() -> None:
    target = taken_in(other(), target=after(opened(), firing(B)))
    assert types(after(c.ResolveAlerts((B,)), state=target), c.AutoResolve("all over")) == []


def test_a_split_ticket_stands_as_before_with_what_still_fires() -> None:
    source = other(c.Acknowledge(), firing(A, B))
    merged = after(c.MergeInto(after(opened())), state=source)
    split = after(c.Split(after(opened()), (B,)), state=merged)
    assert (split.state, split.owner, split.firing, split.merged_into, split.resolved_at) == (
        "acknowledged",
        "alice",
        1,
        None,
        None,
    )


def test_a_target_gives_back_what_the_merged_ticket_brought() -> None:
    source = other(firing(A, B), first=blamed(finding()))
    before = after(opened(), firing("cccccccc-0000-4000-8000-000000000000"))
    target = taken_in(source, A, B, target=before)
    apart = after(c.Separate(source, (A, B), (A, B)), state=target)
    assert (apart.alerts, apart.firing, apart.findings, dict(apart.merged)) == (1, 1, 0, {})


def test_the_time_while_it_was_merged_is_with_nobody() -> None:
    merged = after(c.MergeInto(after(opened())), state=other(), now=NOON + timedelta(minutes=5))
    split = after(c.Split(after(opened()), ()), state=merged, now=NOON + timedelta(minutes=50))
    done = after(c.Resolve("none"), state=split, now=NOON + timedelta(minutes=55))
    assert done.team_seconds == {"storage": 600.0}


def test_what_was_merged_further_is_split_from_there_first() -> None:
    target = taken_in(other())
    gone = after(c.MergeInto(replace(after(opened()), id=A, number=7)), state=target)
    with pytest.raises(CommandRefusedError, match="#1 is itself merged into #7"):
        types(gone, c.Separate(other(), (), ()))


def test_what_is_not_merged_is_not_split() -> None:
    with pytest.raises(CommandRefusedError, match="#2 is not merged"):
        types(other(), c.Split(after(opened()), ()))


def test_taking_a_ticket_in_wakes_one_that_sleeps_until_it_changes() -> None:
    assert taken_in(other(), target=after(opened(), c.Snooze())).state == "open"
