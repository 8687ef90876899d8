"""Probabilities of the selector on fleets whose nodes differ, against incidents that followed."""

from functools import cache

import numpy as np
import pytest

from analyzers.builtin.selector.trial import scored
from tests.benchmarks.worlds_selector import Stated, run_world

WORLDS = (("frail", 302), ("lemons", 301), ("lemons", 302))

judged = cache(run_world)


def concordance(found: Stated, method: str) -> float:
    tried = scored(np.array(found.stated[method]), np.array(found.happened))
    assert tried.concordance is not None
    return tried.concordance


@pytest.mark.simulated
def test_as_many_incidents_are_stated_as_happen() -> None:
    results = [judged(world) for world in WORLDS]
    stated = sum(sum(one.stated["selector"]) for one in results)
    happened = sum(sum(one.happened) for one in results)
    assert not any(one.undecided for one in results)
    assert happened > 40
    assert 0.8 * happened <= stated <= 1.25 * happened


@pytest.mark.simulated
@pytest.mark.parametrize("world", WORLDS)
def test_nodes_are_ranked_as_well_as_by_incidents_so_far_and_days_since_the_last(
    world: tuple[str, int],
) -> None:
    found = judged(world)
    assert concordance(found, "selector") >= concordance(found, "two columns") - 0.02
