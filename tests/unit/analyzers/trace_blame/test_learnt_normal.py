"""Lessons from the history: how much times vary, what load does, and when a fault began."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from analyzers.builtin.trace_blame.analysis import references
from analyzers.builtin.trace_blame.analyzer import ANALYZER, HISTORY
from analyzers.builtin.trace_blame.load import FULL, USED, slower
from analyzers.builtin.trace_blame.spans import clock_step, spans_of
from analyzers.contract import Verdict, Window, check_params
from analyzers.simulators.trace_rows import window
from analyzers.simulators.traces import COLUMNS, MINUTE_US, SpanColumns

CALLS = ("shop", "cart", "stock", "prices", "users")
TYPICAL_US = (900.0, 2000.0, 1000.0, 1500.0, 700.0)
"""The first service calls all others, one after the other; only the serving side records a call."""

Slowdown = Callable[[int], float]
"""By number of a window, how many times as long the `stock` service takes."""


def minute(rng: np.random.Generator, number: int, stock: float, load: float, all_by: float) -> SpanColumns:
    """One minute of traces with two instances of each service."""
    traces = int(60 * load)
    own = np.array(TYPICAL_US)[:, np.newaxis] * np.exp(rng.normal(0, 0.4, (len(CALLS), traces))) * all_by
    own[CALLS.index("stock")] *= stock
    trace = np.arange(traces) + 1 + 1000 * number
    start = np.sort(rng.uniform(0, MINUTE_US, traces)) + number * MINUTE_US
    parts = []
    for place, name in enumerate(CALLS):
        begins = start + (0 if place == 0 else own[0] / 2 + own[1:place].sum(axis=0))
        pod = rng.integers(0, 2, traces)
        parts.append(
            {
                "trace": trace,
                "span": trace * 10 + place,
                "parent": np.zeros(traces, dtype=np.int64) if place == 0 else trace * 10,
                "service": np.full(traces, name),
                "pod": np.where(pod == 0, f"{name}-a", f"{name}-b"),
                "operation": np.full(traces, f"do {name}"),
                "time": begins,
                "duration_us": own.sum(axis=0) if place == 0 else own[place],
                "error": np.zeros(traces, dtype=np.bool_),
            }
        )
    return SpanColumns({name: np.concatenate([part[name] for part in parts]) for name in COLUMNS})


def last_of(windows: int, stock: Slowdown, load: float = 1.0, all_by: float = 1.0) -> Window:
    """The last of so many windows, with all that its history may hold; `load` and `all_by` are of the last one."""
    rng = np.random.default_rng(7)
    made: list[Window] = []
    for number in range(windows):
        now = number == windows - 1
        recorded = minute(rng, number, stock(number), load if now else 1.0, all_by if now else 1.0)
        past = tuple(made[-HISTORY:]) if now else ()
        made.append(window(recorded, number, past))
    return made[-1]


def judged(one: Window) -> Verdict:
    return ANALYZER.analyze(one, check_params(ANALYZER, {}))


def named(verdict: Verdict) -> list[str]:
    return [suspect.component for suspect in verdict.suspects]


def test_an_operation_of_one_millisecond_that_takes_five_is_named() -> None:
    """Version 2.1 was quiet: one place, hidden under a resolution of 1 ms and a drift that no history lowered."""
    last = HISTORY
    assert named(judged(last_of(last + 1, lambda number: 5.0 if number == last else 1.0))) == [
        "service/stock"
    ]


@pytest.mark.simulated
@pytest.mark.parametrize("since", [4, 8])
def test_a_fault_that_fills_most_of_the_history_is_still_named(since: int) -> None:
    """Version 2.1 took it for normal from its sixth window on."""
    verdict = judged(last_of(HISTORY + 1, lambda number: 5.0 if number >= since else 1.0))
    assert named(verdict) == ["service/stock"]


@pytest.mark.simulated
def test_a_lasting_fault_that_ended_accuses_no_one() -> None:
    last = HISTORY
    verdict = judged(last_of(last + 1, lambda number: 5.0 if 4 <= number < last else 1.0))
    assert not named(verdict)


@pytest.mark.simulated
def test_what_the_history_saw_now_and_then_accuses_no_one() -> None:
    verdict = judged(last_of(HISTORY + 1, lambda number: 5.0 if number in (3, 7, HISTORY) else 1.0))
    assert not named(verdict)


def test_under_twice_the_load_a_service_may_take_longer() -> None:
    used = 0.4
    slowed = (1 - used) / (1 - 2.2 * used)
    last = HISTORY
    window_of_peak = last_of(last + 1, lambda number: slowed if number == last else 1.0, load=2.2, all_by=1.2)
    assert not named(judged(window_of_peak))


def test_the_slowdown_under_load_is_that_of_a_single_queue() -> None:
    load = math.log(1.5)
    expected = [math.log((1 - used) / (1 - min(FULL, 1.5 * used))) for used in USED.tolist()]
    assert slower(np.array([load]))[:, 0] == pytest.approx(expected)


@pytest.mark.parametrize("step", [1, 1000])
def test_the_step_of_the_clock_is_read_from_the_durations(step: int) -> None:
    one = last_of(2, lambda _number: 1.0)
    duration = one.sums["spans"].values["duration_us"]
    duration[:] = np.floor(duration / step) * step
    past = one.history[0].sums["spans"].values["duration_us"]
    past[:] = np.floor(past / step) * step
    assert clock_step(spans_of(one)) == step


def test_all_of_a_history_says_what_is_normal_first_and_then_its_oldest_windows() -> None:
    assert [references(windows) for windows in (0, 4, 6, 8, 14)] == [
        (0,),
        (4,),
        (6,),
        (6, 4, 2),
        (12, 7, 2),
    ]
