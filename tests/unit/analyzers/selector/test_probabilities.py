"""Probabilities of the selector on fleets whose nodes differ, against incidents that followed."""

import pytest

from tests.benchmarks.worlds_selector import run_world

WORLDS = (("frail", 302), ("lemons", 301), ("lemons", 302))


@pytest.mark.simulated
def test_as_many_incidents_are_stated_as_happen() -> None:
    results = [run_world(world) for world in WORLDS]
    stated = sum(sum(one.stated["selector"]) for one in results)
    happened = sum(sum(one.happened) for one in results)
    assert not any(one.undecided for one in results)
    assert happened > 40
    assert 0.8 * happened <= stated <= 1.25 * happened
