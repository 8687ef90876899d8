"""A size that the component reached before is no news; a fault of a new size is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from analyzers.builtin.metric_blame.change import changes
from analyzers.builtin.metric_blame.series import Identity, Observed

MINUTES, PAST, WINDOW = timedelta(minutes=5), 60, 5
STARTS = tuple(datetime(2026, 1, 2, tzinfo=UTC) + n * MINUTES for n in range(PAST + WINDOW))
P50, P99 = (Identity("service/a", name, "", "latency") for name in ("p50_seconds", "p99_seconds"))


def evidence(earlier: float, of: int = 0) -> list[float]:
    """Nats of two latencies that both triple for three readings, one of which (`of`) grew `earlier` as much before."""
    rng = np.random.default_rng(3)
    series = (P50, P99, *(Identity(f"service/{n}", "p50_seconds", "", "latency") for n in range(20)))
    values = 1 + 0.02 * rng.standard_normal((len(series), PAST + WINDOW))
    values[:2, PAST + 1 : PAST + 4] += 2.0
    values[of, 20:23] += 2.0 * earlier
    seen = Observed(STARTS, MINUTES, PAST, series, values, {}, 0)
    found = {one.identity: one.nats for one in changes(seen, 2, 12).found}
    return [found[P50], found[P99]]


def test_a_change_of_a_new_size_has_evidence() -> None:
    assert min(evidence(0.0)) > 5


@pytest.mark.parametrize("earlier", [0.7, 1.0, 2.0])
def test_an_excursion_that_was_there_before_is_a_habit_of_the_component(earlier: float) -> None:
    assert max(evidence(earlier)) == pytest.approx(np.log(11 / 2))


def test_a_smaller_excursion_of_before_takes_nothing_away() -> None:
    assert min(evidence(0.2)) > 5
