from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from incidents.domain.incident import commands as c
from incidents.domain.incident.finding import (
    Finding,
    JoinOpen,
    OpenNew,
    RecordOnResolved,
    ScheduleWindow,
    Wait,
    cause_after,
    feed_of,
    percent,
    place,
    severity_of,
    verdict_of,
)
from incidents.domain.incident.state import Incident
from tests.unit.incidents.incident.cases import NOON, after, blamed, finding, opened, types

S7, S8, T12, T13 = "storage_cluster/s7", "storage_cluster/s8", "tor/t12", "tor/t13"


def window(minutes: int, *causes: str) -> ScheduleWindow:
    end = NOON + timedelta(minutes=minutes)
    return ScheduleWindow(end - timedelta(hours=1), end, tuple(frozenset([cause]) for cause in causes))


def resolved(at: datetime, cause: str = S7, **behind: datetime) -> Incident:
    """`behind`: how far the telemetry of a kind had come by then, where it was behind the clock."""
    known = {feed_of(kind, "default"): moment for kind, moment in behind.items()}
    return after(c.Resolve(cause, "", known), state=after(blamed(finding())), now=at)


@pytest.mark.parametrize(
    ("ticket", "new"),
    [
        ((S7, ()), (S7, ())),
        ((S7, (T12,)), (T12, ())),
        ((T12, ()), (S7, (T12,))),
        ((S7, (T12,)), (S8, (T12,))),
    ],
)
def test_a_finding_joins_the_open_ticket_whose_cause_it_shares(
    ticket: tuple[str, tuple[str, ...]], new: tuple[str, tuple[str, ...]]
) -> None:
    incident = after(blamed(finding(*ticket)))
    assert place(finding(*new), [incident], []) == JoinOpen(incident)


def test_a_finding_on_the_component_of_a_reported_ticket_joins_it() -> None:
    incident = after(opened(component=S7))
    assert place(finding(), [incident], []) == JoinOpen(incident)


def test_a_finding_of_another_region_does_not_join() -> None:
    incident = after(blamed(finding(region="east")))
    assert isinstance(place(finding(region="west", sure=True), [incident], []), OpenNew)


def test_the_ticket_of_the_same_component_is_preferred() -> None:
    meets, same = after(blamed(finding(S8, [T12]), 1)), after(blamed(finding(S7), 2))
    assert place(finding(S7, [T12]), [meets, same], []) == JoinOpen(same)


def test_failures_before_the_resolution_are_recorded_on_the_resolved_ticket() -> None:
    incident = resolved(NOON)
    late = finding(end=NOON + timedelta(hours=1), last_failure=NOON, sure=True)
    assert place(late, [incident], []) == RecordOnResolved(incident)


def test_failures_after_the_resolution_open_a_ticket() -> None:
    new = finding(end=NOON + timedelta(hours=1), last_failure=NOON + timedelta(seconds=1), sure=True)
    assert isinstance(place(new, [resolved(NOON)], []), OpenNew)


def failed_at(hours: float) -> Finding:
    moment = NOON + timedelta(hours=hours)
    return finding(end=moment + timedelta(minutes=5), last_failure=moment, sure=True)


def test_a_failure_that_the_data_had_not_reached_opens_a_ticket_though_the_clock_had_passed_it() -> None:
    ticket = resolved(NOON, unit_failure=NOON - timedelta(hours=3))
    assert isinstance(place(failed_at(-2), [ticket], [], ["unit_failure"]), OpenNew)


def test_a_failure_that_the_data_had_shown_is_recorded_though_it_is_told_late() -> None:
    ticket = resolved(NOON, unit_failure=NOON - timedelta(hours=3))
    assert place(failed_at(-4), [ticket], [], ["unit_failure"]) == RecordOnResolved(ticket)


def test_telemetry_of_another_kind_that_lags_makes_no_news() -> None:
    ticket = resolved(NOON, outage=NOON - timedelta(hours=3))
    assert place(failed_at(-2), [ticket], [], ["unit_failure"]) == RecordOnResolved(ticket)


def test_telemetry_of_another_region_that_lags_makes_no_news() -> None:
    known = {feed_of("unit_failure", "east"): NOON - timedelta(hours=3)}
    ticket = after(c.Resolve(S7, "", known), state=after(blamed(finding())))
    assert place(failed_at(-2), [ticket], [], ["unit_failure"]) == RecordOnResolved(ticket)


def test_of_several_kinds_the_one_furthest_behind_counts() -> None:
    ticket = resolved(NOON, probe=NOON - timedelta(hours=1), outage=NOON - timedelta(hours=3))
    assert isinstance(place(failed_at(-2), [ticket], [], ["probe", "outage"]), OpenNew)


def test_a_finding_whose_telemetry_is_not_known_rather_opens_a_ticket() -> None:
    ticket = resolved(NOON, unit_failure=NOON - timedelta(hours=3))
    assert isinstance(place(failed_at(-2), [ticket], [], None), OpenNew)


def test_a_ticket_that_is_opened_again_forgets_how_far_the_data_was() -> None:
    ticket = resolved(NOON, unit_failure=NOON - timedelta(hours=3))
    assert after(c.Reopen(), state=ticket).known_until == {}


def test_the_confirmed_cause_counts_as_the_cause() -> None:
    incident = resolved(NOON, cause=T12)
    assert place(finding(T12, last_failure=NOON), [incident], []) == RecordOnResolved(incident)


def test_a_sure_finding_opens_at_once() -> None:
    assert isinstance(place(finding(sure=True), [], []), OpenNew)


def test_a_weak_finding_waits_for_a_second_window() -> None:
    assert isinstance(place(finding(), [], [window(-10), window(-5), window(0, S7)]), Wait)


@pytest.mark.parametrize("earlier", [(-5,), (-10,)])
def test_a_weak_finding_opens_after_two_of_three_windows(earlier: tuple[int, ...]) -> None:
    windows = [window(m, *([S7] if m in earlier or m == 0 else [])) for m in (-10, -5, 0)]
    assert place(finding(), [], windows) == OpenNew("opened after 2 of the last 3 windows")


def test_a_fourth_window_back_is_not_counted() -> None:
    windows = [window(-15, S7), window(-10), window(-5), window(0, S7)]
    assert isinstance(place(finding(), [], windows), Wait)


def test_windows_across_a_pause_are_not_consecutive() -> None:
    windows = [window(-125, S7), window(-5), window(0, S7)]
    assert isinstance(place(finding(), [], windows), Wait)


def test_a_window_that_blames_one_of_the_ambiguous_group_counts() -> None:
    assert isinstance(place(finding(S7, [T12]), [], [window(-5, T12), window(0, S7)]), OpenNew)


def test_a_weak_finding_of_a_single_run_waits() -> None:
    assert isinstance(place(finding(schedule=None), [], []), Wait)


def test_a_finding_that_names_one_of_the_group_narrows_the_cause() -> None:
    incident = after(blamed(finding(S7, [T12])))
    assert cause_after(incident, finding(T12)) == (T12, ())


def test_what_one_window_told_apart_stays_apart() -> None:
    incident = after(blamed(finding(S7)))
    assert cause_after(incident, finding(S7, [T12])) == (S7, ())


def test_a_stranger_that_a_fading_failure_was_confused_with_gets_its_own_ticket() -> None:
    fading = after(blamed(finding(S7)), c.JoinFinding(finding(S7, [T12])))
    assert isinstance(place(finding(T12, sure=True), [fading], []), OpenNew)


def test_a_component_stays_while_the_finding_allows_it() -> None:
    incident = after(blamed(finding(S7, [T12])))
    assert cause_after(incident, finding(T12, [S7])) == (S7, (T12,))


def test_a_group_that_merely_meets_changes_nothing() -> None:
    incident = after(blamed(finding(S7, [T12])), c.JoinFinding(finding(T13, [T12], score=0.5)))
    assert (incident.component, incident.ambiguous_with, incident.confidence) == (S7, (T12,), 0.93)


def test_a_further_suspect_of_the_run_that_named_the_component_takes_nothing_from_it() -> None:
    named = after(blamed(finding(S7)))
    further = finding(T12, [S7], score=0.5)
    assert place(further, [named], []) == JoinOpen(named)
    assert types(named, c.JoinFinding(further)) == ["incident.finding_joined"]
    joined = after(c.JoinFinding(further), state=named)
    assert (joined.component, joined.ambiguous_with, joined.confidence) == (S7, (), 0.93)
    assert (joined.title, joined.verdict, joined.opinions) == (named.title, named.verdict, named.opinions)
    assert isinstance(place(finding(T12, run="run-2", sure=True), [joined], []), OpenNew)


@pytest.mark.parametrize(
    ("rate", "score", "sure", "severity"),
    [
        (0.20, 0.9, False, "critical"),
        (0.19, 0.9, False, "error"),
        (0.019, 0.9, False, "warning"),
        (None, 0.9, True, "error"),
        (None, 0.9, False, "warning"),
        (0.20, 0.4, False, "error"),
        (0.02, 0.4, False, "warning"),
    ],
)
def test_the_severity_follows_from_estimate_and_score(
    rate: float | None, score: float, sure: bool, severity: str
) -> None:
    assert severity_of(finding(failure_rate=rate, score=score, sure=sure)) == severity


def test_what_has_not_failed_yet_is_for_information() -> None:
    assert severity_of(finding(failure_rate=None, score=None, forecast=True)) == "info"


def test_what_an_analyzer_says_in_words_stands_in_the_verdict() -> None:
    said = finding(failure_rate=None, score=0.97, phrase="is 10 % slower than the fleet")
    assert verdict_of(said, 0.97) == f"{S7} is 10 % slower than the fleet, 97 % likely at fault."


def test_the_verdict_is_one_plain_sentence() -> None:
    assert verdict_of(finding(ambiguous_with=[T12]), 0.93) == (
        "storage_cluster/s7 fails 2.1 % of what depends on it, 93 % likely at fault;"
        " indistinguishable in the data from tor/t12."
    )


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"),
        (0.0004, "under 0.1 %"),
        (0.021, "2.1 %"),
        (0.93, "93 %"),
        (0.9999, "over 99 %"),
        (1, "100 %"),
    ],
)
def test_a_share_is_never_rounded_to_certainty(share: float, text: str) -> None:
    assert percent(share) == text


def test_the_title_that_an_analyzer_gave_says_what_its_latest_verdict_says() -> None:
    worse = finding(failure_rate=0.12, run="r2")
    assert after(blamed(finding()), c.JoinFinding(worse)).title == f"{S7} fails 12 % of what depends on it"


def test_a_title_that_a_person_gave_stays() -> None:
    titled = after(
        blamed(finding()), c.SetTitle("Disks of s7"), c.JoinFinding(finding(failure_rate=0.12, run="r2"))
    )
    assert titled.title == "Disks of s7"
