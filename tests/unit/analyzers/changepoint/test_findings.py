"""Changes that name a component, and those that are for the better or follow the load of all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from analyzers.builtin.changepoint.detect import Change, Detected
from analyzers.builtin.changepoint.findings import BETTER, BUSIER, Outcome, conclude
from analyzers.builtin.changepoint.series import Identity, Observed

MINUTE = timedelta(minutes=1)
COLUMNS = 240
STARTS = tuple(datetime(2026, 1, 2, tzinfo=UTC) + n * MINUTE for n in range(COLUMNS))
PEAK = [(f"service/s{n}", "http_requests_per_second", 100.0, 180.0) for n in range(4)]
PEAK += [(f"service/s{n}", "http_requests_total", 6_000.0, 10_800.0) for n in range(4, 6)]


Changed = tuple[str, str, float, float]


def concluded(*changed: Changed, steady: int = 0, unseen: Sequence[Changed] = (), late: int = 0) -> Outcome:
    """Changes (component, metric, before, after), all at one minute but the last, which is so much later, beside
    components with a metric that is steady, and `unseen` changes, too small for the day.
    """
    steadily = [(f"service/t{n}", "http_requests_total", 1.0, 1.0) for n in range(steady)]
    rows = [*changed, *steadily, *unseen]
    onsets = [200 + late * (at == len(changed) - 1) for at in range(len(rows))]
    series = tuple(Identity(name=name, component=component, rest="") for component, name, _, _ in rows)
    columns = np.arange(COLUMNS)
    values = np.array(
        [
            np.where(columns < onset, before, after)
            for (_, _, before, after), onset in zip(rows, onsets, strict=True)
        ]
    )
    seen = Observed(STARTS, MINUTE, 120, 180, series, values, 0)
    changes = tuple(
        Change(at, onsets[at] - 1, onsets[at], onsets[at] + 1, COLUMNS, before, after, shift, 20.0)
        for at, (_, _, before, after) in enumerate(changed)
        for shift in [5.0 if after > before else -5.0]
    )
    return conclude(seen, Detected(np.arange(len(series)), changes, (), (), np.zeros(len(series))))


@pytest.mark.parametrize(
    ("name", "before", "after", "named"),
    [
        ("process_resident_memory_bytes", 2e9, 1.5e9, False),
        ("process_resident_memory_bytes", 1.5e9, 2e9, True),
        ("node_memory_MemAvailable_bytes", 2e9, 1e9, True),
        ("http_requests_total", 100.0, 180.0, False),
        ("http_requests_total", 180.0, 10.0, True),
        ("http_request_duration_seconds", 0.1, 0.3, True),
        ("http_requests_failed_total", 1.0, 9.0, True),
    ],
)
def test_what_is_for_the_better_names_nobody(name: str, before: float, after: float, named: bool) -> None:
    found = concluded(("service/a", name, before, after), steady=9)
    assert bool(found.named) is named
    assert [why for _, why in found.cleared] == ([] if named else [BETTER])


def test_requests_to_all_are_one_metric_and_explain_what_grows_with_them() -> None:
    found = concluded(*PEAK, ("host/h", "node_load1", 2.0, 3.5), ("service/s1", "latency_seconds", 0.1, 0.2))
    assert found.named == ()
    assert [one.changed for one in found.common] == [6]
    assert [why for _, why in found.cleared] == [BUSIER, BUSIER]


LATENCY = ("service/s1", "latency_seconds", 0.1, 0.2)


@pytest.mark.parametrize("late", [0, 10])
def test_a_peak_too_small_for_the_day_explains_what_grows_with_it(late: int) -> None:
    found = concluded(PEAK[0], LATENCY, unseen=PEAK[1:], late=late)
    assert found.named == ()
    assert found.common == ()
    assert [why for _, why in found.cleared] == [BETTER, BUSIER]


def test_requests_to_a_few_explain_nothing() -> None:
    found = concluded(PEAK[0], LATENCY, unseen=PEAK[1:3], steady=4)
    assert [one.component for one in found.named] == ["service/s1"]
    assert concluded(*PEAK, LATENCY, late=30).named


def test_a_fault_that_load_does_not_explain_is_named_in_a_peak() -> None:
    found = concluded(*PEAK, ("service/s1", "latency_seconds", 0.1, 0.5))
    assert [one.component for one in found.named] == ["service/s1"]
