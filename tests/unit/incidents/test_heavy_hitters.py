"""The sketch against exact counts: never below, above by its bound as seldom as stated; the heaviest are found."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.heavy_hitters import WIDTH_FACTOR, CountMin, HeavyHitters

pytestmark = pytest.mark.hypothesis


@given(st.lists(st.text(max_size=3), max_size=80), st.integers(1, 16), st.integers(1, 8), st.integers(0, 99))
def test_an_estimate_is_never_below_the_count(texts: list[str], width: int, depth: int, seed: int) -> None:
    sketch = CountMin(width, depth, seed)
    for text in texts:
        sketch.add(text)
    assert sketch.total == len(texts)
    for text, count in Counter(texts).items():
        assert count <= sketch.estimate(text) <= len(texts)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_an_estimate_is_above_its_bound_as_seldom_as_stated(depth: int) -> None:
    width, names = 32, [f"a{n}" for n in range(150)]
    rng = np.random.default_rng(depth)
    wrong = of = 0
    for seed in range(12):
        counts = Counter({name: int(count) for name, count in zip(names, rng.zipf(1.4, 150), strict=True)})
        counts = Counter({name: min(count, 1000) for name, count in counts.items()})
        sketch = CountMin(width, depth, seed)
        for name, count in counts.items():
            sketch.add(name, count)
        bound = WIDTH_FACTOR * counts.total() / width
        wrong += sum(sketch.estimate(name) - count > bound for name, count in counts.items())
        of += len(counts)
    assert wrong / of <= math.exp(-depth)


def test_the_heaviest_of_many_are_found_in_little_memory() -> None:
    rng = np.random.default_rng(7)
    stream = [f"alert-{n}" for n in np.minimum(rng.zipf(1.3, 5_000), 5_000).tolist()]
    heavy = HeavyHitters[str](20)
    for name in stream:
        heavy.add(name, name)
    exact = Counter(stream)
    found = heavy.heaviest(10)
    assert [one.thing for one in found] == [name for name, _ in exact.most_common(10)]
    assert all(one.least <= exact[one.thing] <= one.most for one in found)


@pytest.mark.parametrize(("width", "depth"), [(0, 3), (8, 0), (8, 9)])
def test_a_sketch_without_counters_is_refused(width: int, depth: int) -> None:
    with pytest.raises(ValueError, match="width of at least 1"):
        CountMin(width, depth)
