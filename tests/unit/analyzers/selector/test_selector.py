"""The selector: intervals at risk, which benchmarks to run when, and when it says nothing.

What fits a model is in `tests/integration/analyzers/test_selector_fits.py`.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.selector.episodes import Episodes, episodes
from analyzers.builtin.selector.plan import Past, choose, greedy, past_of
from analyzers.builtin.selector.trial import scored
from analyzers.contract import Sums
from analyzers.simulators.node_wear import Rates, draw, rows_of, run
from tests.unit.analyzers.selector.cases import START, row, verdict_of, window_of

SIGHT, GONE = frozenset({"observed"}), frozenset({"retired"})


def told_of(rows: list[dict[str, Any]], hours: float) -> Episodes:
    return episodes(window_of(rows, hours), SIGHT, GONE)


def on_clock(told: Episodes) -> list[tuple[float, float, bool]]:
    """Each interval from and to, since the last incident, and whether it ended with one."""
    begun, ended = (told.start - told.origin).round(6), (told.stop - told.origin).round(6)
    return list(zip(begun.tolist(), ended.tolist(), told.event.tolist(), strict=True))


def test_the_clock_starts_anew_with_every_incident_and_the_last_interval_is_censored() -> None:
    told = told_of([row("a", 0), row("a", 10, "ecc"), row("a", 15), row("a", 30, "ecc")], 48)
    assert on_clock(told) == [(0, 10, True), (0, 5, False), (5, 20, True), (0, 18, False)]
    assert told.incidents.tolist() == [0, 1, 1, 2]


def test_covariates_are_those_known_when_the_interval_begins() -> None:
    told = told_of([row("a", 0, heat=3), row("a", 5, fans=1), row("a", 9, heat=4)], 12)
    assert told.names == ("incidents_before", "fans", "heat")
    expected = [[0, np.nan, 3], [0, 1, 3], [0, 1, 4]]
    np.testing.assert_array_equal(told.covariates, expected)


def test_a_retired_node_is_not_at_risk_until_it_is_seen_again() -> None:
    told = told_of([row("a", 0), row("a", 5, "retired"), row("a", 50)], 60)
    assert on_clock(told) == [(0, 5, False), (0, 10, False)]


def test_rows_of_one_moment_are_one() -> None:
    told = told_of([row("a", 0, heat=1), row("a", 5, "ecc"), row("a", 5, heat=2)], 8)
    assert on_clock(told) == [(0, 5, True), (0, 3, False)]
    assert told.covariates[:, 1].tolist() == [1, 2]


def test_what_was_known_at_a_time_ends_there() -> None:
    told = told_of([row("a", 0), row("a", 10, "ecc")], 48)
    at = float(told.start[0]) + 6
    assert on_clock(told.until(at)) == [(0, 6, False)]
    assert len(told.under_way(at)) == 1


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "No node was seen in this window."),
        (
            [row("a", 0), row("b", 1)],
            "No probability: no incident follows a sighting; 10 are needed.",
        ),
        (
            [row("a", 0), row("a", 5, "ecc")],
            "No probability: one incident follows a sighting; 10 are needed.",
        ),
        ([row("a", 0, "ecc")], "No probability: no incident follows a sighting; 10 are needed."),
    ],
)
def test_too_little_is_inconclusive_with_the_reason(rows: list[dict[str, Any]], reason: str) -> None:
    assert verdict_of(rows)["reason"] == reason


PAST = Past(
    {
        "fast": frozenset({("a", 1), ("b", 1)}),
        "slow": frozenset({("a", 1), ("b", 1), ("c", 1), ("d", 1)}),
        "idle": frozenset(),
    },
    {"fast": 0.5, "slow": 4.0, "idle": None},
)


def test_benchmarks_are_taken_by_new_defects_per_hour() -> None:
    steps = greedy(PAST, 0.5)
    assert [(one.benchmark, one.coverage, one.hours) for one in steps] == [
        ("fast", 0.5, 0.5),
        ("slow", 1.0, 4.5),
    ]


def test_benchmarks_are_run_until_the_target_is_met_while_they_pay() -> None:
    steps = greedy(PAST, 0.5)
    assert choose(0.15, steps, 0.1, 1000).benchmarks == ("fast",)
    assert choose(0.5, steps, 0.1, 1000).benchmarks == ("fast", "slow")
    assert choose(0.5, steps, 0.1, 10).benchmarks == ("fast",)
    assert choose(0.05, steps, 0.1, 1000).benchmarks == ()


def test_without_defects_nobody_can_say_which_benchmark_finds_them() -> None:
    assert greedy(Past({"a": frozenset()}, {"a": 1.0}), 0.5) == ()


def results(nodes: int, sick: int) -> Sums:
    """A day of a bandwidth on some nodes, one of them slow, and how long the benchmark took."""
    flat = [(f"node/n{n:02d}", "bw", 80.0 if n == sick else 100 + 0.01 * n) for n in range(nodes)]
    flat.append(("node/n00", "duration_minutes", 30.0))
    flat.sort()
    at = (START - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    keys: dict[str, Any] = {
        "node": tuple(one[0] for one in flat),
        "benchmark": ("mem",) * len(flat),
        "metric": tuple(one[1] for one in flat),
        "sku": ("",) * len(flat),
        "time": np.full(len(flat), at, dtype=np.int64),
        "value": np.array([one[2] for one in flat]),
    }
    return Sums(keys, {"times": np.ones(len(flat), dtype=np.int64)}, len(flat))


def test_past_results_tell_what_each_benchmark_found_and_how_long_it_takes() -> None:
    past = past_of(window_of([row("a", 0)], 24, results=results(30, 7)))
    assert {node for node, _ in past.found["mem"]} == {"node/n07"}
    assert past.hours == {"mem": pytest.approx(0.5)}


def test_probabilities_are_scored_as_by_hand() -> None:
    tried = scored(np.array([0.9, 0.1, 0.6, 0.2]), np.array([True, False, False, True]))
    assert tried.brier == pytest.approx((0.01 + 0.01 + 0.36 + 0.64) / 4)
    assert (tried.climate, tried.concordance) == (0.25, 0.75)


def test_policies_meet_the_same_luck_and_an_oracle_has_fewer_incidents() -> None:
    rates = Rates(nodes=30, days=60, wear=0.08)
    luck = draw(rates, np.random.default_rng(1))
    never, again, oracle = run(rates, luck), run(rates, luck), run(rates, luck, oracle=True)
    assert never.incidents == again.incidents
    assert 0 <= len(oracle.incidents) < len(never.incidents)


def test_a_trace_is_written_as_rows_that_the_selector_reads() -> None:
    rates = Rates(nodes=10, days=30, wear=0.2)
    trace = run(rates, draw(rates, np.random.default_rng(2)))
    rows = rows_of(trace)
    assert sum(one["kind"] == "gpu_failure" for one in rows) == len(trace.incidents) > 0
    assert rows == sorted(rows, key=lambda one: one["time"])
