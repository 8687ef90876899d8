"""Measurements ranked by expected information, and what their answers change on an incident."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from incidents.domain.incident import commands as c
from incidents.domain.incident.decide import CommandRefusedError, decide
from incidents.domain.incident.questions import beliefs
from incidents.domain.incident.state import Incident
from incidents.domain.questions import (
    NONE,
    Group,
    Path,
    Question,
    candidates,
    dialogue_from,
    entropy,
    information,
    lost_for_positive,
    priced,
    prior,
    ranked,
    rates,
    updated,
)
from tests.unit.incidents.incident.cases import NOON, after, blamed, finding, types

LINK, LEAF, SPINE = "link/leaf1~spine1", "switch/leaf1", "switch/spine1"
OVER_LEAF = Path("host/h1", "host/h2", (LEAF,))
OVER_BOTH = Path("host/h1", "host/h3", (LEAF, LINK, "switch/leaf2"))


def asked(tests: tuple[str, ...], **fields: Any) -> Question:
    return Question(**{"kind": "drain", "target": tests[0], "tests": tests, "detection": 0.9, "false_alarm": 0.1,
                       "minutes": 10.0, "cost": 0.0, **fields})  # fmt: skip


def ambiguous(score: float = 0.9) -> Incident:
    return after(blamed(finding(LINK, (LEAF, SPINE), score=score)))


def said(outcome: Any, tests: tuple[str, ...] = (LEAF,), **fields: Any) -> c.AnswerQuestion:
    question = fields.pop("question", asked(tests, detection=0.99, false_alarm=0.01))
    return c.AnswerQuestion(question, outcome, "alice", **fields)


def by_enumeration(found: dict[str, float], question: Question) -> float:
    """The expected entropy reduction as it is defined: every outcome, its probability, its posterior."""
    expected = 0.0
    for positive in (True, False):
        joint = {
            name: p * (rate if positive else 1 - rate)
            for name, p in found.items()
            for rate in [question.detection if name in question.tests else question.false_alarm]
        }
        total = sum(joint.values())
        expected += total * entropy({name: one / total for name, one in joint.items()})
    return entropy(found) - expected


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_closed_form_is_the_expected_entropy_reduction(size: int) -> None:
    found = prior([Group(("a/1", "a/2"), 0.8), Group(("b/1",), 0.4), Group(("c/1", "c/2", "c/3"), None)])
    names = sorted(found.keys() - {NONE})
    for tests, (d, f) in itertools.product(itertools.combinations(names, size), [(0.9, 0.02), (0.6, 0.3)]):
        question = asked(tests, detection=d, false_alarm=f)
        assert information(found, question) == pytest.approx(by_enumeration(found, question), abs=1e-12)


def test_independent_groups_of_which_at_most_one_is_at_fault_make_the_prior() -> None:
    found = prior([Group(("a/1", "a/2"), 0.75), Group(("b/1",), 0.5)])
    either = {"a": 0.75 * 0.5, "b": 0.25 * 0.5, NONE: 0.25 * 0.5}
    total = sum(either.values())
    assert found["a/1"] + found["a/2"] == pytest.approx(either["a"] / total)
    assert (found["b/1"], found[NONE]) == pytest.approx((either["b"] / total, either[NONE] / total))


def test_of_many_suspects_the_least_likely_count_as_none_of_them() -> None:
    found = prior([Group(tuple(f"gpu/{n}" for n in range(500)), 0.9)])
    assert len(found) == 65
    assert math.fsum(found.values()) == pytest.approx(1.0)


def test_answers_in_any_order_make_the_same_beliefs() -> None:
    start = prior([Group((LINK, LEAF, SPINE), 0.9)])
    first, second = asked((LINK, LEAF)), asked((SPINE,), detection=0.7, false_alarm=0.2)
    there = updated(updated(start, first, "positive"), second, "negative")
    back = updated(updated(start, second, "negative"), first, "positive")
    assert there == pytest.approx(back)
    assert updated(start, first, "unclear") == start


def test_of_paths_that_test_the_same_suspects_the_shortest_is_offered() -> None:
    longer = Path("host/h7", "host/h1", ("link/x~y", LEAF))
    made = candidates([LINK, LEAF, NONE], [longer, OVER_LEAF, OVER_BOTH], {}, 0.3)
    assert {(one.src, one.tests) for one in made if one.kind == "probe"} == {
        ("host/h1", (LEAF,)),
        ("host/h1", (LINK, LEAF)),
    }
    assert {one.tests for one in made if one.kind == "link_test"} == {(LINK, LEAF)}
    assert {one.target for one in made if one.kind == "drain"} == {LINK, LEAF}


def test_parts_of_one_node_are_tested_by_one_benchmark() -> None:
    made = candidates(
        ["gpu/1", "gpu/2", "nic/9"], [], {"gpu/1": "node/a", "gpu/2": "node/a", "nic/9": "node/b"}, None
    )
    assert [(one.target, one.tests) for one in made if one.kind == "benchmark"] == [
        ("node/a", ("gpu/1", "gpu/2")),
        ("node/b", ("nic/9",)),
    ]


def test_a_cheap_probe_that_halves_the_suspects_goes_before_draining_one() -> None:
    found = prior([Group((LINK, LEAF), 0.9)])
    first = ranked(found, candidates(found, [OVER_LEAF, OVER_BOTH], {}, 0.3))[0]
    assert (first.question.kind, first.question.tests) == ("probe", (LEAF,))


def test_what_tests_no_suspect_or_both_alike_is_not_offered() -> None:
    found = {LINK: 0.5, LEAF: 0.5, NONE: 0.0}
    assert ranked(found, [asked((LINK, LEAF)), asked(("switch/other",))]) == []


def test_of_the_last_two_suspects_only_what_separates_them_is_offered() -> None:
    found = {LINK: 0.45, LEAF: 0.4, SPINE: 0.01, NONE: 0.14}
    both = asked((LINK, LEAF), kind="probe", minutes=1.0, detection=0.99, false_alarm=0.01)
    unlikely = asked((SPINE, "switch/other"), kind="probe", minutes=1.0, detection=0.99, false_alarm=0.01)
    one = asked((LINK,), minutes=15.0, cost=30.0)
    assert information(found, both) / 1 > information(found, one) / 45, "worth more, were it not for the two"
    (best,) = ranked(found, [both, one, unlikely])
    assert best.question == one
    two = {LINK: 0.45 / 0.85, LEAF: 0.4 / 0.85}
    assert best.bits == pytest.approx(0.85 * by_enumeration(two, one), abs=1e-12)


def test_a_single_suspect_that_remains_is_to_be_confirmed() -> None:
    found = {LINK: 0.7, LEAF: 0.01, NONE: 0.29}
    confirming = asked((LINK, LEAF), detection=0.99, false_alarm=0.01)
    (best,) = ranked(found, [confirming])
    assert best.bits == pytest.approx(by_enumeration(found, confirming), abs=1e-12)


@pytest.mark.parametrize(("share", "packets"), [(0.3, 100), (0.02, 400), (0.002, 6400)])
def test_a_fault_that_loses_less_needs_more_probes(share: float, packets: int) -> None:
    (found,) = [one for one in candidates([LEAF], [OVER_LEAF], {}, share * 2) if one.kind == "probe"]
    assert (found.packets, found.detection >= 0.95) == (packets, True)


def test_the_rates_of_a_probe_are_those_of_the_binomial_within_their_bounds() -> None:
    lost = lost_for_positive(400)
    pmf = [math.comb(400, k) * 0.01**k * 0.99 ** (400 - k) for k in range(401)]
    assert rates(400, 0.01)[0] == pytest.approx(min(0.99, sum(pmf[lost:])), abs=1e-4)
    assert rates(400, 0.01)[1] == 0.01
    assert rates(50, 1.0) == (0.99, 0.01)


def test_a_fault_that_delays_packets_is_not_answered_by_lost_ones() -> None:
    (found,) = [one for one in candidates([LEAF], [OVER_LEAF], {}, 0.0) if one.kind == "probe"]
    assert (found.positive, found.is_judged_by_rows) == ("answers are late", False)
    with pytest.raises(CommandRefusedError, match="a person has to answer"):
        decide(ambiguous(), c.RequestProbe(found, NOON), NOON)


def test_a_positive_answer_narrows_the_cause_and_its_sentence() -> None:
    incident = after(said("positive"), state=ambiguous())
    assert (incident.component, incident.ambiguous_with) == (LEAF, ())
    assert incident.verdict is not None
    assert incident.verdict.startswith(LEAF)
    assert incident.title.startswith(LEAF)
    assert incident.questions is not None
    assert incident.questions.ruled_out == (LINK, SPINE)
    assert dialogue_from(incident.questions.as_json()) == incident.questions


def test_the_event_holds_the_sums() -> None:
    (event,) = decide(ambiguous(), said("negative", (LEAF, LINK)), NOON)
    body = event.body
    start = beliefs(ambiguous())
    assert body["prior"] == pytest.approx(start, abs=1e-5)
    assert body["posterior"] == pytest.approx(
        updated(start, said("negative", (LEAF, LINK)).question, "negative"), abs=1e-5
    )
    assert body["bits_gained"] == pytest.approx(entropy(start) - entropy(body["posterior"]), abs=1e-3)
    assert (body["component"], body["ambiguous_with"], body["effect"]) == (SPINE, [], "narrowed")


def test_the_next_finding_of_the_whole_group_keeps_what_was_narrowed() -> None:
    narrowed = after(said("positive"), state=ambiguous())
    again = after(c.JoinFinding(finding(LINK, (LEAF, SPINE), run="run-2")), state=narrowed)
    assert (again.component, again.ambiguous_with) == (LEAF, ())
    assert again.title.startswith(LEAF)


def test_a_finding_that_blames_what_was_ruled_out_speaks_against_the_answer() -> None:
    narrowed = after(said("positive"), state=ambiguous())
    against = after(c.JoinFinding(finding(LINK, run="run-2", analyzer="netbouncer")), state=narrowed)
    assert LINK in narrowed.covers
    assert against.component == LEAF
    assert beliefs(against)[LINK] > beliefs(narrowed)[LINK]


def test_a_repeated_answer_records_nothing_and_a_contradiction_gives_the_suspects_back() -> None:
    narrowed = after(said("positive"), state=ambiguous())
    assert types(narrowed, said("positive")) == []
    (event,) = decide(narrowed, said("negative"), NOON)
    assert (event.body["effect"], event.body["component"]) == ("contradicts", LEAF)
    assert set(event.body["ambiguous_with"]) == {LINK, SPINE}
    assert event.body["posterior"] == pytest.approx(beliefs(ambiguous()), abs=1e-5)


def test_the_same_measurement_again_is_recorded_and_counts_once() -> None:
    later = NOON + timedelta(minutes=5)
    once = after(said("positive"), state=ambiguous())
    (event,) = decide(once, said("positive", at=later), later)
    assert (event.body["effect"], event.body["posterior"]) == ("repeated", event.body["prior"])


@pytest.mark.parametrize(
    ("command", "effect"),
    [(said("unclear"), "unclear"), (said("positive", ("switch/other",)), "no_suspect")],
)
def test_an_answer_that_tells_nothing_is_recorded_and_leaves_the_cause(
    command: c.AnswerQuestion, effect: str
) -> None:
    (event,) = decide(ambiguous(), command, NOON)
    assert (event.body["effect"], event.body["component"]) == (effect, LINK)
    assert event.body["ambiguous_with"] == [LEAF, SPINE]


def test_a_late_answer_is_recorded_and_changes_no_cause() -> None:
    resolved = after(c.Resolve(LEAF), state=ambiguous())
    (event,) = decide(resolved, said("positive", (SPINE,)), NOON)
    assert (event.body["effect"], event.body["component"], event.body["verdict"]) == ("late", LINK, None)


def test_answers_that_clear_every_suspect_leave_the_cause() -> None:
    incident = ambiguous()
    for tests in ((LINK,), (LEAF,), (SPINE,)):
        incident = after(said("negative", tests), state=incident)
    assert max(beliefs(incident), key=lambda name: beliefs(incident)[name]) == NONE
    assert incident.component is not None


def test_an_answer_from_the_future_is_refused() -> None:
    with pytest.raises(CommandRefusedError, match="in the future"):
        decide(ambiguous(), said("positive", at=NOON + timedelta(hours=1)), NOON)


def test_a_probe_is_asked_for_once_until_its_time_is_over() -> None:
    (question,) = [one for one in candidates([LEAF], [OVER_LEAF], {}, 0.3) if one.kind == "probe"]
    ask = c.RequestProbe(question, NOON + timedelta(minutes=30))
    incident = after(ask, state=ambiguous())
    assert types(incident, ask) == []
    assert incident.questions is not None
    assert [one.question for one in incident.questions.pending(NOON)] == [question]
    assert incident.questions.pending(NOON + timedelta(minutes=30)) == []
    answered = after(said("negative", question=replace(question, detection=0.98)), state=incident)
    assert answered.questions is not None
    assert answered.questions.pending(NOON) == []


def test_other_costs_change_the_order_and_not_the_questions() -> None:
    suspects, paths = (LINK, LEAF), (OVER_LEAF, OVER_BOTH)
    believed = prior([Group(suspects, 0.9)])
    usual = candidates(suspects, paths, {}, 0.1)
    dear = candidates(suspects, paths, {}, 0.1, priced({"probe": (600.0, 60.0)}))
    assert {one.id for one in usual} == {one.id for one in dear}
    assert ranked(believed, usual)[0].question.kind == "probe"
    first = ranked(believed, dear)[0].question
    assert first.kind == "drain", "a test of the link tests its end too, and tells them apart not at all"
    assert all(one.minutes > 600 for one in dear if one.kind == "probe")
