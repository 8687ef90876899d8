"""Proof of repair: what the sequential test says of rows, and what it does not let itself be told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from incidents.domain.remediation.proof import CAP, Counts, Row, Source, dispersion, judge, unrepaired_rate
from incidents.domain.remediation.spells import Spells, spells
from incidents.remediation.sweep import is_news

RETURN = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def rows(outcomes: Sequence[int], attempts: int = 1, since: datetime = RETURN, step: float = 60) -> list[Row]:
    return [Row(since + timedelta(seconds=step * i), attempts, failed) for i, failed in enumerate(outcomes)]


def source(after: Sequence[int], before: Sequence[int] = (1, 0) * 20, kind: str = "job_attempt") -> Source:
    """A part that failed in half of its jobs, in a fleet that fails in one of a hundred."""
    history = rows(before, since=RETURN - timedelta(hours=5), step=400)
    return Source(kind, history, rows(after), Counts(10_000, 100))


def test_rows_without_failures_prove_the_repair() -> None:
    proof = judge([source([0] * 200)], RETURN)
    assert (proof["verdict"], proof["failures"], proof["needed"]) == ("repaired", 0, None)
    assert proof["for_repaired"] >= proof["bound"] == round(math.log(100), 3)
    assert proof["rows"] < 100


def test_rows_that_fail_as_before_show_that_it_is_not_repaired() -> None:
    proof = judge([source([1, 0] * 50)], RETURN)
    assert (proof["verdict"], proof["assumed"]) == ("not_repaired", False)
    assert proof["rows"] < 40


def test_few_rows_prove_nothing_and_the_number_that_is_needed_is_right() -> None:
    few = judge([source([0] * 5)], RETURN)
    assert few["verdict"] == "unknown"
    enough = 5 + few["needed"]
    assert judge([source([0] * (enough - 1))], RETURN)["verdict"] == "unknown"
    assert judge([source([0] * enough)], RETURN)["verdict"] == "repaired"


def test_one_row_of_many_attempts_decides_nothing() -> None:
    many = replace(source([]), after=rows([0], attempts=100_000))
    proof = judge([many], RETURN)
    assert (proof["verdict"], proof["for_repaired"]) == ("unknown", CAP)


def test_an_outage_of_the_whole_fleet_says_nothing_against_the_part() -> None:
    alone = judge([source([1] * 8)], RETURN)
    shared = replace(source([1] * 8), hours={RETURN: Counts(1000, 900)})
    assert (alone["verdict"], judge([shared], RETURN)["verdict"]) == ("not_repaired", "unknown")


def test_a_source_that_did_not_show_the_fault_does_not_count_beside_one_that_did() -> None:
    blind = source([0] * 500, before=[0] * 40, kind="benchmark")
    proof = judge([blind, source([0] * 3)], RETURN)
    assert proof["verdict"] == "unknown"
    assert [one["kind"] for one in proof["sources"]] == ["job_attempt"]


def test_where_no_source_showed_the_fault_the_proof_says_what_it_assumes() -> None:
    proof = judge([source([0] * 60, before=())], RETURN)
    assert (proof["verdict"], proof["assumed"]) == ("repaired", True)
    assert "the rate of an unrepaired part is assumed" in proof["summary"]


def test_a_part_that_did_not_fail_while_it_had_the_fault_is_watched_several_times_as_long() -> None:
    blind = [0] * 40
    early = judge([source([0] * 60, before=blind)], RETURN)
    assert (early["verdict"], early["needed"]) == ("unknown", 9 * 40 - 60)
    late = judge([source([0] * 400, before=blind)], RETURN)
    assert (late["verdict"], late["rows"]) == ("repaired", 9 * 40)
    assert "healthy for 40 rows while it had the fault; assumed: never for 9 times as many" in late["summary"]
    began = replace(source([0] * 60, before=blind), began=RETURN)
    assert judge([began], RETURN)["verdict"] == "repaired", "rows before the fault began say nothing of it"


def test_a_fault_that_came_and_went_is_watched_longer_than_its_healthy_spells() -> None:
    spell = [1, 1, 0, 1, 1, 1]
    once = judge([source([0] * 200, before=[*spell, *[0] * 60, *spell])], RETURN)
    assert (once["verdict"], once["sources"][0]["rows_demanded"]) == ("unknown", 9 * 60)
    often = judge([source([0] * 600, before=[*spell, *([0] * 60 + spell) * 6])], RETURN)
    demanded = math.ceil(360 * (100 ** (1 / 6) - 1))
    assert (often["verdict"], often["sources"][0]["rows_demanded"]) == ("repaired", demanded)
    assert often["rows"] >= demanded
    assert "assumed" not in often["summary"]
    assert judge([source([1] * 30, before=[*spell, *[0] * 60, *spell])], RETURN)["verdict"] == "not_repaired"


def test_failures_that_come_independently_are_no_spells() -> None:
    rng = np.random.default_rng(5)
    demanded = [spells((rng.random(120) < rate).tolist()).demanded(0.01) for rate in [0.3, 0.05] * 100]
    assert np.mean([one > 0 for one in demanded]) <= 0.1
    assert (spells([]).demanded(0.01), spells([True] * 9).demanded(0.01)) == (0, 0)


def test_the_next_healthy_spell_is_longer_than_demanded_as_seldom_as_promised() -> None:
    rng = np.random.default_rng(6)
    for count in (3, 5, 12):
        seen = rng.exponential(200, (2000, count + 1))
        demanded = [Spells(tuple(np.ceil(row[:-1]).astype(int).tolist())).demanded(0.01) for row in seen]
        assert np.mean(seen[:, -1] > demanded) <= 0.01 + 2.6 * math.sqrt(0.01 * 0.99 / 2000)


def test_without_rows_it_says_that_no_telemetry_reads_the_part() -> None:
    proof = judge([], RETURN)
    assert (proof["verdict"], proof["needed"], proof["rows"]) == ("unknown", None, 0)
    assert "no telemetry about the part" in proof["summary"]


def test_failures_that_came_in_bursts_make_each_row_count_less() -> None:
    bursts = [1] * 20 + [0] * 180
    independent = np.random.default_rng(7).permutation(bursts).tolist()
    steady = dispersion(rows(independent))
    assert dispersion(rows(bursts)) > 3 > 2 > steady
    slow, fast = (judge([source([0] * 400, before=one)], RETURN) for one in (bursts, independent))
    assert slow["rows"] > 1.5 * fast["rows"]


def test_what_is_not_repaired_has_half_of_the_fault_and_at_least_three_times_the_odds() -> None:
    assert unrepaired_rate(source([])) == pytest.approx(0.181, abs=0.002)
    weak = Source("job_attempt", rows([1, 1] + [0] * 90), (), Counts(10_000, 100))
    assert unrepaired_rate(weak) == pytest.approx(0.0293, abs=0.001)


def test_the_first_verdict_ends_the_test() -> None:
    proof = judge([source([0] * 200 + [1] * 200)], RETURN)
    assert (proof["verdict"], proof["failures"]) == ("repaired", 0)


@pytest.mark.parametrize(
    ("before", "now", "news"),
    [(None, (0, "unknown"), True), ((10, "unknown"), (12, "unknown"), False), ((10, "unknown"), (15, "unknown"), True),
     ((10, "unknown"), (11, "repaired"), True), ((0, "unknown"), (0, "unknown"), False)],
)  # fmt: skip
def test_figures_are_recorded_as_rows_grow_and_verdicts_at_once(
    before: tuple[int, str] | None, now: tuple[int, str], news: bool
) -> None:
    was = None if before is None else {"rows": before[0], "verdict": before[1]}
    assert is_news(was, {"rows": now[0], "verdict": now[1]}) == news
