"""Stances of analyzers on a resolved incident."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from incidents.domain.incident import commands as c
from incidents.domain.incident.outcome import AnalyzerOutcome, analyzer_outcomes
from incidents.domain.incident.state import Incident
from incidents.scorecards.queries import cards_as_of
from tests.unit.incidents.incident.cases import NOON, after, blamed, finding, opened, word

S7, MINUTE = "storage_cluster/s7", timedelta(minutes=1)


def resolved(*commands: c.Command, cause: str = S7, **fields: Any) -> Incident:
    return after(blamed(finding(**fields)), *commands, c.Resolve(cause))


def outcomes(state: Incident) -> dict[str, str]:
    return {one.analyzer: one.outcome for one in analyzer_outcomes(state)}


def only(state: Incident) -> AnalyzerOutcome:
    (one,) = analyzer_outcomes(state)
    return one


def test_the_confirmed_cause_was_blamed() -> None:
    assert outcomes(resolved()) == {"deepview": "right"}


def test_one_of_an_ambiguous_group_was_confirmed() -> None:
    assert outcomes(resolved(cause="tor/t1", ambiguous_with=["tor/t1"])) == {"deepview": "right"}


def test_another_component_was_confirmed() -> None:
    assert outcomes(resolved(cause="tor/t1")) == {"deepview": "wrong"}


def test_nothing_was_at_fault() -> None:
    assert outcomes(resolved(cause="none")) == {"deepview": "wrong"}


def test_a_class_of_causes_says_of_no_analyzer_whether_it_was_right() -> None:
    assert outcomes(resolved(cause="Firmware")) == {}


def test_an_open_ticket_counts_nowhere() -> None:
    assert analyzer_outcomes(after(blamed(finding()))) == []


def test_a_reopened_ticket_counts_nowhere() -> None:
    assert analyzer_outcomes(after(c.Reopen(), state=resolved())) == []


def test_the_latest_resolution_counts() -> None:
    state = after(c.Reopen(), c.Resolve("tor/t1"), state=resolved())
    assert outcomes(state) == {"deepview": "wrong"}


def test_a_blame_that_ended_before_the_resolution_counts() -> None:
    quiet = c.ClearFinding("run-q", "hourly", "deepview", "2026-11-21T12:05:00Z")
    assert outcomes(resolved(quiet)) == {"deepview": "right"}


def test_one_that_saw_nothing_or_blamed_another_is_judged_elsewhere() -> None:
    assert outcomes(resolved(c.NoteOpinion(word()), c.NoteOpinion(word("link/x", analyzer="b")))) == {
        "deepview": "right"
    }


def test_a_miss_counts_as_one() -> None:
    note = c.RecordMissedCause(
        S7, "voting", "1.0.0", 12, "2026-11-21T11:00:00Z", "2026-11-21T12:00:00Z", "run-9"
    )
    assert outcomes(after(note, state=resolved())) == {"deepview": "right", "voting": "missed"}


def test_what_nobody_reported_was_found_alone_and_first_without_a_lead() -> None:
    one = only(resolved())
    assert (one.first, one.alone, one.lead_seconds) == (True, True, None)


def test_an_alert_after_the_blame_gives_the_lead() -> None:
    state = after(c.Join(opened().report), state=after(blamed(finding())), now=NOON + 7 * MINUTE)
    one = only(after(c.Resolve(S7), state=state))
    assert (one.first, one.alone, one.lead_seconds) == (True, False, 420.0)


def test_a_person_who_came_before_makes_the_lead_negative() -> None:
    state = after(c.JoinFinding(finding()), state=after(opened(component=S7)), now=NOON + MINUTE)
    one = only(after(c.Resolve(S7), state=state))
    assert (one.first, one.alone, one.lead_seconds) == (False, False, -60.0)


def test_a_wrong_blame_was_never_first() -> None:
    one = only(resolved(cause="none"))
    assert (one.first, one.alone, one.lead_seconds) == (False, False, None)


def card(*states: Incident) -> dict[str, int]:
    found = cards_as_of(states, NOON - MINUTE, NOON + MINUTE)
    return {} if not found else {"right": found["deepview"].right, "waiting": found["deepview"].waiting}


def test_a_card_as_of_a_moment_counts_the_states_of_then() -> None:
    assert card(resolved(), after(blamed(finding()))) == {"right": 1, "waiting": 1}


def test_a_ticket_resolved_outside_the_period_is_not_on_its_card() -> None:
    late = after(blamed(finding()), c.Resolve(S7), now=NOON + 2 * MINUTE)
    assert card(late) == {}
