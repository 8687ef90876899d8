"""Several analyzers on one incident: who agrees, what they are worth together, who contradicts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.incident import commands as c
from incidents.domain.incident.decide import decide
from incidents.domain.incident.dissent import CAP, Dissent
from incidents.domain.incident.evolve import evolve
from incidents.domain.incident.state import Incident, fused, opinion_from
from incidents.domain.incident.timeline import repeated, sentence
from tests.unit.incidents.incident.cases import NOON, Recorded, after, blamed, finding, opened, types, word

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
scores = st.floats(0, 1)


def by(analyzer: str, score: float | None = 0.9, **more: Any) -> c.JoinFinding:
    return c.JoinFinding(
        finding(run=f"run-{analyzer}", analyzer=analyzer, schedule=analyzer, score=score, **more)
    )


def ticket(*commands: c.Command, score: float | None = 0.9) -> Incident:
    return after(blamed(finding(score=score)), *commands)


def says(state: Incident) -> dict[str, str]:
    return {name: one.stance for name, one in state.opinions.items()}


def test_one_score_alone_stays_what_it_is() -> None:
    assert fused([0.9996, None]) == 0.9996


def test_no_score_at_all_is_no_number() -> None:
    assert fused([None, None]) is None


def test_a_second_analyzer_counts_half_its_log_odds() -> None:
    assert fused([0.9, 0.9]) == pytest.approx(27 / 28)  # odds 9 * 9 ** 0.5


def test_a_score_under_one_half_does_not_lower_what_another_says() -> None:
    assert fused([0.9, 0.2]) == pytest.approx(0.9)


@given(st.lists(scores, min_size=2, max_size=5))
def test_agreement_never_lowers_the_best_and_never_makes_certainty(given: list[float]) -> None:
    together = fused(given)
    assert together is not None
    assert max(given) - 1e-12 <= together <= max(CAP, *given)


@given(st.lists(scores, min_size=2, max_size=5))
def test_the_order_of_analyzers_does_not_matter(given: list[float]) -> None:
    assert fused(given) == fused(list(reversed(given)))


def test_two_analyzers_that_agree_raise_the_confidence() -> None:
    assert ticket(by("voting")).confidence == pytest.approx(27 / 28)


def test_each_analyzer_keeps_its_own_score() -> None:
    state = ticket(by("voting", score=0.6))
    assert {name: one.score for name, one in state.opinions.items()} == {"deepview": 0.9, "voting": 0.6}


def test_an_analyzer_without_a_score_supports_without_a_number() -> None:
    state = ticket(by("voting", score=None))
    assert (state.confidence, says(state)["voting"]) == (0.9, "blames")


def test_the_verdict_names_those_who_agree() -> None:
    assert ticket(by("voting")).verdict == (
        "storage_cluster/s7 fails 2.1 % of what depends on it, 96 % likely at fault as deepview and voting agree."
    )


def test_a_forecast_agrees_with_nobody_who_sees_a_fault() -> None:
    state = ticket(by("selector", None, forecast=True))
    assert says(state)["selector"] == "blames"
    assert "agree" not in (state.verdict or "")


def test_the_sentence_of_the_surer_analyzer_stands_whoever_spoke_last() -> None:
    assert ticket(by("voting", score=0.6, failure_rate=None)).analyzer == "deepview"


def test_analyzers_agree_only_about_the_same_time() -> None:
    assert ticket(by("voting", score=0.7, end=NOON + 3 * HOUR)).confidence == 0.7


def test_the_latest_score_of_one_analyzer_replaces_its_earlier_one() -> None:
    state = ticket(by("voting"), by("voting", score=0.5))
    assert state.confidence == pytest.approx(0.9)


def test_a_finding_that_merely_meets_the_group_agrees_with_nobody() -> None:
    state = after(
        blamed(finding(ambiguous_with=["tor/t1"])),
        by("voting", component="tor/t2", ambiguous_with=["tor/t1"]),
    )
    assert (says(state)["voting"], state.confidence) == ("blames_other", 0.93)


def test_when_one_of_two_no_longer_blames_the_confidence_is_the_others() -> None:
    quiet = c.ClearFinding("run-q", "voting", "voting", "2026-11-21T12:05:00Z")
    state = ticket(by("voting"), quiet)
    assert (state.confidence, says(state)) == (0.9, {"deepview": "blames", "voting": "no_longer_blames"})


def test_when_the_last_one_no_longer_blames_the_ticket_says_what_it_said() -> None:
    quiet = c.ClearFinding("run-q", "hourly", "deepview", "2026-11-21T12:05:00Z")
    state = ticket(quiet)
    assert (state.confidence, says(state)) == (0.9, {"deepview": "no_longer_blames"})


def test_the_timeline_names_the_schedule_that_no_longer_blames() -> None:
    quiet = c.ClearFinding("run-q", "hourly", "deepview", "2026-11-21T12:05:00Z")
    (event,) = decide(ticket(), quiet, NOON)
    said = sentence(Recorded(event.type, event.body, "system:incidents", NOON))
    assert said == "hourly found no fault here in the window that ended 2026-11-21 12:05 UTC"


def test_a_blame_stands_while_another_schedule_of_the_analyzer_still_holds_it() -> None:
    daily = c.JoinFinding(finding(run="run-2", schedule="daily"))
    quiet = c.ClearFinding("run-q", "hourly", "deepview", "2026-11-21T12:05:00Z")
    assert says(ticket(daily, quiet)) == {"deepview": "blames"}


def test_an_analyzer_that_saw_nothing_is_heard_once() -> None:
    first, later = c.NoteOpinion(word()), c.NoteOpinion(word(end=NOON + 5 * MINUTE))
    assert says(ticket(first)) == {"deepview": "blames", "voting": "saw_nothing"}
    assert types(ticket(first), later) == []


def test_a_contradiction_changes_nothing_that_the_ticket_says() -> None:
    before, state = ticket(), ticket(c.NoteOpinion(word("link/a~b", score=0.99)))
    assert (state.confidence, state.verdict, state.component) == (
        before.confidence,
        before.verdict,
        before.component,
    )


def test_a_dissent_with_a_record_lowers_a_lone_blame_and_says_why() -> None:
    state = ticket(c.NoteOpinion(word(dissent=Dissent(one=2.2))))
    assert state.confidence == pytest.approx(0.5, abs=0.01)  # odds 9 / exp(2.2)
    assert state.verdict is not None
    assert "lowered because voting judged it without naming it" in state.verdict


def test_a_dissent_with_a_record_against_agreement_lowers_it() -> None:
    state = ticket(by("netbouncer"), c.NoteOpinion(word(dissent=Dissent(several=2.2))))
    assert state.confidence == pytest.approx(0.75, abs=0.01)  # odds 27 / exp(2.2)
    assert state.verdict is not None
    assert "as deepview and netbouncer agree, lowered because voting" in state.verdict


def test_a_dissent_lowers_nothing_that_two_analyzers_agree_on() -> None:
    state = ticket(by("netbouncer"), c.NoteOpinion(word(dissent=Dissent(one=2.2))))
    assert state.confidence == pytest.approx(27 / 28)


def test_a_lone_blame_is_lowered_again_when_the_other_no_longer_agrees() -> None:
    quiet = c.ClearFinding("run-q", "netbouncer", "netbouncer", "2026-11-21T12:05:00Z")
    state = ticket(by("netbouncer"), c.NoteOpinion(word(dissent=Dissent(one=2.2))), quiet)
    assert state.confidence == pytest.approx(0.5, abs=0.01)


def test_an_analyzer_that_agreed_before_does_not_dissent() -> None:
    later = c.NoteOpinion(word(schedule="voting", end=NOON + HOUR, dissent=Dissent(one=2.2)))
    assert ticket(by("voting"), later).confidence == 0.9


def test_a_dissenter_that_comes_to_agree_raises_the_confidence() -> None:
    assert ticket(c.NoteOpinion(word(dissent=Dissent(one=2.2))), by("voting")).confidence == pytest.approx(
        27 / 28
    )


def test_silence_of_another_schedule_takes_no_blame_back() -> None:
    quiet = c.NoteOpinion(word(analyzer="deepview", schedule="daily", end=NOON + HOUR))
    assert types(ticket(), quiet) == []


def test_a_late_window_takes_nothing_back() -> None:
    quiet = c.NoteOpinion(word(analyzer="deepview", schedule="hourly", end=NOON - HOUR))
    assert types(ticket(), quiet) == []


def test_two_schedules_that_name_different_things_do_not_take_turns() -> None:
    one = c.NoteOpinion(word("link/a~b", schedule="short"))
    other = c.NoteOpinion(word("link/c~d", schedule="long", end=NOON + MINUTE))
    assert types(ticket(one), other) == []


def test_an_analyzer_that_blamed_something_else_may_come_to_agree() -> None:
    state = ticket(c.NoteOpinion(word("link/a~b")), by("voting"))
    assert says(state)["voting"] == "blames"
    assert state.confidence == pytest.approx(27 / 28)


def test_a_resolved_ticket_hears_nobody() -> None:
    assert types(ticket(c.Resolve("none")), c.NoteOpinion(word())) == []


def test_after_reopening_any_later_window_of_the_analyzer_counts() -> None:
    quiet = c.NoteOpinion(word(analyzer="deepview", schedule="other", end=NOON + HOUR))
    state = ticket(c.Resolve("none"), c.Reopen(), quiet)
    assert says(state) == {"deepview": "no_longer_blames"}


def test_an_opinion_survives_its_way_through_json() -> None:
    opinion = ticket(by("voting")).opinions["voting"]
    assert opinion_from(opinion.as_json()) == opinion


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (c.NoteOpinion(word()), "voting found nothing here in the window that ended 2026-11-21 12:00 UTC"),
        (c.NoteOpinion(word("link/x", score=0.8)), "voting suspects link/x instead, 80 % likely at fault"),
        (
            by("voting"),
            "voting suspected storage_cluster/s7, 90 % likely at fault, in agreement with deepview:"
            " together 96 % likely at fault",
        ),
    ],
)
def test_the_timeline_says_who_agrees_and_who_does_not(command: c.Command, said: str) -> None:
    state = ticket()
    assert sentence(_event(state, command)) == said


def test_an_opinion_that_goes_back_and_forth_is_one_line() -> None:
    event = _event(ticket(), c.NoteOpinion(word()))
    assert repeated(event, 3).endswith("12:00 UTC (verdict changed 3 times)")


def _event(state: Incident, command: c.Command) -> Recorded:
    (event, *_) = decide(state, command, NOON)
    return Recorded(event.type, event.body, "system:incidents", NOON)


def missed(cause: str = "storage_cluster/s7") -> c.RecordMissedCause:
    return c.RecordMissedCause(
        cause, "voting", "1.0.0", 12, "2026-11-21T11:00:00Z", "2026-11-21T12:00:00Z", "run-9"
    )


def test_a_miss_is_noted_once_for_the_cause_that_was_confirmed() -> None:
    resolved = ticket(c.Resolve("storage_cluster/s7"))
    assert types(resolved, missed()) == ["incident.analyzer_missed_cause"]
    assert types(after(missed(), state=resolved), missed()) == []
    assert types(resolved, missed("tor/t1")) == []


def test_reopening_forgets_what_was_missed() -> None:
    state = ticket(c.Resolve("storage_cluster/s7"), missed(), c.Reopen())
    assert state.missed_by == {}


def test_a_ticket_that_only_analyzers_found_was_reported_by_nobody() -> None:
    assert ticket().reported_at is None


def test_the_first_alert_that_joins_is_the_first_report() -> None:
    state = after(c.Join(opened().report), state=ticket(), now=NOON + MINUTE)
    state = after(c.Join(opened().report), state=state, now=NOON + HOUR)
    assert state.reported_at == NOON + MINUTE


def test_a_ticket_opened_by_a_person_was_reported_then() -> None:
    assert evolve(None, _opening()).reported_at == NOON


def _opening() -> Recorded:
    (event,) = decide(None, opened(), NOON)
    return Recorded(event.type, event.body, "user:alice", NOON)
