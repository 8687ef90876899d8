"""State of the failure, apart from the state of the work."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from frontend.templatetags.dossier import past_tense
from incidents.domain.incident import commands as c
from incidents.domain.incident.state import Failure, Incident, failure_of, is_quiet
from tests.unit.incidents.incident.cases import NOON, after, blamed, finding, opened, word

MINUTE = timedelta(minutes=1)
FIRST = NOON - 55 * MINUTE


def found(last: datetime | None, **more: object) -> Incident:
    state = after(blamed(finding(last_failure=last, **more)))  # type: ignore[arg-type]
    return replace(state, failing_since=FIRST)


def test_a_failure_at_the_end_of_the_latest_window_is_failing() -> None:
    state = found(NOON - MINUTE)
    assert failure_of(state, NOON + MINUTE, NOON) == Failure("failing", FIRST)
    assert not is_quiet(state)


def test_a_failure_long_before_the_end_of_a_window_that_blames_is_quiet() -> None:
    state = found(NOON - 34 * MINUTE)
    assert failure_of(state, NOON + MINUTE, NOON) == Failure("quiet", NOON - 34 * MINUTE)
    assert is_quiet(state)


def test_a_later_window_without_blame_is_quiet_since_the_last_failure() -> None:
    later = NOON + 5 * MINUTE
    note = c.ClearFinding("run-2", "hourly", "deepview", later.isoformat())
    state = after(note, state=found(NOON - MINUTE))
    assert failure_of(state, later, later) == Failure("quiet", NOON - MINUTE)
    assert is_quiet(state)


def test_no_judged_window_for_hours_is_no_data() -> None:
    state = found(NOON - MINUTE)
    assert failure_of(state, NOON + timedelta(hours=5), None) == Failure("no_data", NOON)


def test_quiet_needs_windows_that_are_judged() -> None:
    state = found(NOON - 34 * MINUTE)
    late = NOON + timedelta(hours=5)
    assert failure_of(state, late, late - MINUTE).state == "quiet"
    assert failure_of(state, late, NOON + MINUTE) == Failure("no_data", NOON + MINUTE)


def test_an_analyzer_without_failure_times_fails_while_it_blames() -> None:
    assert failure_of(found(None), NOON, NOON).state == "failing"
    assert not is_quiet(found(None))


def test_a_report_by_a_person_is_unknown() -> None:
    assert failure_of(after(opened()), NOON, None) == Failure("unknown", None)
    assert not is_quiet(after(opened()))


def test_a_forecast_has_not_failed() -> None:
    assert failure_of(found(None, forecast=True), NOON, NOON).state == "unknown"


def test_a_firing_alert_is_failing_and_a_resting_one_quiet() -> None:
    state = replace(after(opened()), firing=1, alert_at=NOON, reported_at=FIRST)
    assert failure_of(state, NOON + timedelta(days=3), None) == Failure("failing", FIRST)
    rested = replace(state, firing=0)
    assert failure_of(rested, NOON + timedelta(days=3), None) == Failure("quiet", NOON)
    assert is_quiet(rested)


def test_the_state_of_the_work_does_not_change_that_of_the_failure() -> None:
    state = after(c.Acknowledge(), state=found(NOON - 34 * MINUTE))
    assert (state.state, failure_of(state, NOON, NOON).state) == ("acknowledged", "quiet")


def test_other_analyzers_do_not_move_the_last_failure() -> None:
    state = after(c.NoteOpinion(word(end=NOON + MINUTE)), state=found(NOON - MINUTE))
    assert failure_of(state, NOON + MINUTE, NOON).state == "failing"


def test_titles_of_what_is_over_are_in_the_past_tense() -> None:
    assert past_tense("tor/t1 fails 94 % of what depends on it", "tor/t1") == (
        "tor/t1 failed 94 % of what depends on it"
    )
    assert past_tense("Checkout is slow", "tor/t1") == "Checkout is slow"
