"""The parts of pingmesh, against slow and obvious ways of the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from analyzers.builtin.pingmesh.analyzer import FEW, FINE
from analyzers.builtin.pingmesh.black_holes import _medians
from analyzers.builtin.pingmesh.observed import (
    limit_bin,
    measures,
    p_of,
    percentile,
    places,
    tail,
    without_worst,
)
from analyzers.builtin.pingmesh.patterns import Blocks, blocks, classify
from analyzers.builtin.pingmesh.verdict import spread_of
from analyzers.contract import Sums, Window
from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.tables import paths_of


def test_percentiles_from_bins_are_those_of_the_sample_to_five_percent() -> None:
    times = np.random.default_rng(1).lognormal(np.log(268), 0.69, 200_000)
    counts = np.bincount(np.searchsorted(FINE, times, side="right"), minlength=len(FINE) + 1).astype(float)
    for share in (0.5, 0.99):
        exact = float(np.quantile(times, share))
        assert percentile(counts, share) == pytest.approx(exact, rel=0.05)


def test_no_answers_have_no_percentile() -> None:
    assert percentile(np.zeros(len(FINE) + 1), 0.5) is None


def test_every_edge_of_the_few_bins_is_one_of_the_fine() -> None:
    assert set(FEW) <= set(FINE)


def test_an_answer_of_the_limit_itself_is_above_it() -> None:
    assert int(np.searchsorted(FEW, 5000.0, side="right")) == limit_bin(5000.0)


def test_the_tail_is_that_of_the_binomial() -> None:
    exact = sum(stats.binom.pmf(k, 50, 0.1) for k in range(8, 51))
    assert float(tail(np.array(8.0), np.array(50.0), 0.1)) == pytest.approx(exact)


def test_the_worst_row_and_column_are_left_out() -> None:
    hits, tries = np.zeros((4, 4)), np.full((4, 4), 10.0)
    hits[2, :], hits[:, 1] = 5, 3
    kept, among = without_worst(hits, tries)
    assert (kept.sum(), among.sum()) == (0, 90)


def test_one_bad_row_puts_no_group_above_its_limit() -> None:
    hits, tries = np.zeros((20, 20)), np.full((20, 20), 100.0)
    hits[3, :] = 50
    assert float(tail(hits.sum(), tries.sum(), 1e-3)) < 1e-12
    assert p_of(hits, tries, 1e-3) == 1.0


def test_medians_are_those_of_each_group() -> None:
    rng = np.random.default_rng(2)
    group, values = rng.integers(0, 7, 200), rng.random(200)
    expected = [np.sort(values[group == one])[(np.sum(group == one) - 1) // 2] for one in range(7)]
    assert _medians(group, values, 8).tolist() == [*expected, 0.0]


def pattern(drawing: str) -> tuple[str, tuple[int, ...]]:
    """`x` is red, `.` is not, a blank has no answers; a row a podset."""
    cells = np.array([list(line) for line in drawing.split("/")])
    size = len(cells)
    chart = Blocks(
        np.arange(size),
        (cells != " ").astype(float),
        np.ones((size, size)),
        np.zeros((size, size), int),
        cells == "x",
    )
    found = classify(chart)
    return found.name, found.members


@pytest.mark.parametrize(
    ("drawing", "expected"),
    [
        ("../..", ("none", ())),
        ("x", ("podset_failure", (0,))),
        ("xx/x.", ("podset_failure", (0,))),
        (".x/x.", ("spine", (0, 1))),
        ("xx/xx", ("unclassified", ())),
        (".xx/x.x/xx.", ("spine", (0, 1, 2))),
        ("..x/..x/xxx", ("podset_failure", (2,))),
        (".x./.../...", ("unclassified", ())),
        ("x.xx/.x../xxxx/x.xx", ("unclassified", ())),
        ("xxxx/xxxx/xx../xx..", ("podset_failure", (0, 1))),
        (". x/   /x x", ("podset_failure", (2,))),
    ],
)
def test_the_published_patterns_are_told_apart(drawing: str, expected: tuple[str, tuple[int, ...]]) -> None:
    assert pattern(drawing) == expected


def test_answers_within_a_pod_colour_no_podset() -> None:
    tries = np.full((4, 4), 1000.0)
    inside = np.eye(4) * 500
    chart = blocks(np.array([0, 0, 1, 1]), tries, (inside, inside), measures(1e-3), 1e-3)
    assert not chart.red.any()


def test_minutes_of_a_burst_are_few_and_of_a_fault_many() -> None:
    burst, fault = np.array([1.0, 100, 1, 0, 2, 0]), np.array([0.0, 0, 50, 60, 55, 45])
    assert spread_of(burst).spread == pytest.approx(1.08, abs=0.01)
    assert (spread_of(fault).first, spread_of(fault).last, round(spread_of(fault).spread)) == (2, 5, 4)


def topology(**parents: tuple[str, ...]) -> Window:
    names = sorted(name.replace("_", "/", 1) for name in parents)
    column = {name.replace("_", "/", 1): above for name, above in parents.items()}
    rows = {"rows": np.ones(len(names), dtype=np.int64)}
    sums = {
        "places": Sums(
            {"component": tuple(names), "parents": paths_of([column[name] for name in names])},
            rows,
            len(names),
        ),
        "needs": Sums(
            {"component": tuple(names), "depends_on": paths_of([() for _ in names])}, rows, len(names)
        ),
    }
    return Window(EPOCH, EPOCH, "synthetic", "probe_placed", sums)


def test_of_several_containers_of_a_server_the_tor_is_its_pod() -> None:
    found = places(topology(host_a=("cluster/c", "tor/t"), tor_t=("podset/p",)), ["host/a"])
    assert (found.pods, found.podsets) == (("tor/t",), ("podset/p",))


def test_a_server_under_two_tors_has_no_pod() -> None:
    assert places(topology(host_a=("tor/t", "tor/u")), ["host/a"]).pod.tolist() == [-1]


def test_a_spine_that_topology_does_not_name_is_called_after_its_data_centre() -> None:
    found = places(topology(host_a=("tor/t",), tor_t=("podset/p",), podset_p=("datacentre/d",)), ["host/a"])
    assert found.spines[0] == ("spine_tier/d",)
