"""Quantiles of the time to mitigate: too few, structure that is found, what has passed, and no look ahead."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from incidents.domain.similarity.text import Described
from incidents.similarity.time_to_mitigate import LEVELS, Timed, TimeToMitigate, _adapted
from tests.worlds.incident_times import make

START = datetime(2026, 1, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)
MEDIANS = {"disk": 7200.0, "tor": 600.0}


def incident(kind: str, at: datetime, seconds: float | None = None) -> Timed:
    described = Described(f"{kind} is slow", f"{kind}/{kind}1")
    resolved = None if seconds is None else at + timedelta(seconds=seconds)
    return Timed(described, "storage", "warning", at, resolved)


def history(count: int, seed: int = 1) -> list[Timed]:
    draw = np.random.default_rng(seed)
    kinds = ["disk", "tor"]
    return [
        incident(kinds[n % 2], START + 3 * n * HOUR, MEDIANS[kinds[n % 2]] * float(draw.lognormal(0, 0.4)))
        for n in range(count)
    ]


@pytest.fixture(scope="module")
def learned() -> TimeToMitigate:
    return TimeToMitigate(history(220))


def asked(kind: str) -> Timed:
    return incident(kind, START + 1000 * HOUR)


@pytest.mark.parametrize(("count", "said"), [(0, "0 are"), (1, "1 is"), (89, "89 are")])
def test_too_few_past_incidents_say_so(count: int, said: str) -> None:
    found = TimeToMitigate(history(count)).estimate(asked("disk"), 0)
    assert found.seconds == ()
    assert found.why.startswith(f"too few past incidents: {said} resolved, and at least")


@pytest.mark.simulated
def test_each_kind_has_times_of_its_own(learned: TimeToMitigate) -> None:
    for kind, median in MEDIANS.items():
        low, middle, high = learned.estimate(asked(kind), 0).seconds
        assert low < median < high
        assert middle == pytest.approx(median, rel=0.5)


def test_the_record_beats_the_median_of_the_past_and_covers(learned: TimeToMitigate) -> None:
    record = learned.record
    assert record.judged > 100
    assert record.loss < 0.6 * record.loss_of_median
    assert record.loss < record.loss_of_quantiles
    assert record.coverage is not None
    assert 0.7 < record.coverage < 0.9


def test_what_an_incident_has_lasted_is_known(learned: TimeToMitigate) -> None:
    fresh, old = (learned.estimate(asked("tor"), age).seconds for age in (0.0, 1500.0))
    assert old[0] >= 1500
    assert all(later > earlier for earlier, later in zip(fresh, old, strict=True))
    assert learned.estimate(asked("tor"), 1e9).why == "it has lasted longer than any past incident"


def test_an_incident_is_judged_only_by_those_resolved_before_it_opened() -> None:
    """All end after the last one opened, so that none is known when another opens."""
    late = [incident("disk", START + n * HOUR, 500 * 3600.0) for n in range(200)]
    assert TimeToMitigate(late).record.judged == 0


def test_equal_times_and_missing_components_are_no_error() -> None:
    bare = [
        Timed(Described(""), "", "", START + 2 * n * HOUR, START + (2 * n + 1) * HOUR) for n in range(120)
    ]
    assert TimeToMitigate(bare).estimate(bare[0], 0).seconds == pytest.approx((3600, 3600, 3600))


def test_levels_move_against_misses() -> None:
    """Ten times in a row above the upper end widen the range above; times below the lower end widen it below."""
    above = [np.array(LEVELS)] * 10
    low, middle, high = _adapted(above)
    assert (low, middle) == pytest.approx((0.12, 0.6))
    assert high == 0.995
    below = [np.array(LEVELS) - 1] * 10
    assert _adapted(below)[0] == 0.005
    assert _adapted([]).tolist() == list(LEVELS)


@pytest.mark.simulated
@pytest.mark.parametrize("case", ["kinds", "faster", "heavy"])
def test_ranges_hold_eight_of_ten_on_the_second_generator(case: str) -> None:
    past = [
        Timed(Described(one.title, one.component), one.team, one.severity, one.opened_at,
              one.opened_at + timedelta(seconds=one.seconds))
        for one in make(300, case, count=400)
    ]  # fmt: skip
    assert TimeToMitigate(past).record.coverage == pytest.approx(0.8, abs=0.025)
