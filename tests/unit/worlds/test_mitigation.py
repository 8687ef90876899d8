"""Expected losses and recommendations of mitigation against futures that are drawn event by event."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from incidents.domain.remediation.mitigation import options
from tests.benchmarks.mitigation import inputs_of, regrets
from tests.worlds.mitigation import CASES, job, losses


def test_expected_losses_are_the_means_of_drawn_futures() -> None:
    rng = np.random.default_rng(11)
    for _ in range(20):
        one = job(rng)
        drawn = losses(one, "assumed", rng, 20_000)
        expected: dict[str, float | None] = {each.name: each.gpu_hours for each in options(inputs_of(one))}
        assert {name for name, hours in expected.items() if hours is not None} == set(drawn)
        for name, hours in drawn.items():
            error = float(hours.std()) / len(hours) ** 0.5
            assert expected[name] == pytest.approx(float(hours.mean()), abs=5 * error + 1e-6), (name, one)


@pytest.mark.parametrize("case", CASES)
def test_the_recommended_option_loses_less_than_always_the_same(case: str) -> None:
    found = regrets(case, 60, 300, np.random.default_rng(12))
    assert found["recommended"] < 0.5 * min(found["wait"], found["restart"])


def test_a_component_that_is_surely_innocent_is_left_alone() -> None:
    rng = np.random.default_rng(13)
    one = replace(job(rng), guilty=0.0, slow=0.1)
    drawn = losses(one, "assumed", rng, 10)
    assert min(drawn, key=lambda name: float(drawn[name].mean())) == "wait"
    assert options(inputs_of(one))[0].name == "wait"
