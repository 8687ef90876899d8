"""The simulated servers that probe each other: their lists, their times, and what windows of them hold."""

from __future__ import annotations

import numpy as np
import pytest

from analyzers.builtin.pingmesh.analyzer import FEW, FINE
from analyzers.builtin.pingmesh.observed import percentile
from analyzers.contract import Window
from analyzers.simulators.mesh import build, draw_fault
from analyzers.simulators.mesh_rows import probe_rows, topology_rows
from analyzers.simulators.mesh_windows import scene, window_of, with_event

MESH = build(2, 3, 4)


def window(seed: int, kind: str | None = None) -> Window:
    rng = np.random.default_rng(seed)
    faults = [draw_fault(MESH, rng, kind, 3)] if kind else []
    return window_of(scene(MESH, rng, faults), rng, FEW, FINE, 200)


def test_a_server_probes_its_pod_and_its_namesakes_under_every_other_tor() -> None:
    peers = MESH.dst[MESH.src == 5].tolist()
    assert peers == [1, 4, 6, 7, 9, 13, 17, 21]


def test_names_ascend_with_their_numbers() -> None:
    assert list(MESH.servers) == sorted(MESH.servers)


def test_healthy_times_between_pods_are_the_published_ones() -> None:
    counts = np.zeros(len(FINE) + 1)
    sums = window(1).sums["servers"]
    np.add.at(counts, np.asarray(sums.keys["bin"]), sums.values["answers"])
    assert percentile(counts, 0.5) == pytest.approx(250, rel=0.1)
    assert percentile(counts, 0.99) == pytest.approx(1340, rel=0.15)


@pytest.mark.parametrize("kind", [None, "podset_down", "tor_drops", "black_hole_2"])
def test_every_table_of_a_window_counts_the_same_answers(kind: str | None) -> None:
    sums = window(2, kind).sums
    answered = int((sums["pairs"].values["sent"] - sums["pairs"].values["lost"]).sum())
    for name in ("answers", "servers", "minutes"):
        assert int(sums[name].values["answers"].sum()) == answered
    assert int(sums["silent"].values["lost"].sum()) == int(sums["pairs"].values["lost"].sum())


def test_a_dead_server_sends_nothing_and_answers_nothing() -> None:
    rng = np.random.default_rng(3)
    fault = draw_fault(MESH, rng, "pod_down", 0)
    rows = probe_rows(scene(MESH, rng, [fault]), rng, 1)
    gone = f"host/{fault.component.partition('/')[2]}-"
    assert not any(row["src"].startswith(gone) for row in rows)
    assert all(row["lost"] == row["sent"] for row in rows if row["dst"].startswith(gone))


def test_a_drained_podset_is_not_in_the_topology() -> None:
    rng = np.random.default_rng(4)
    drained = with_event(scene(MESH, rng), rng, "planned_drain")
    hosts = [row["component"] for row in topology_rows(drained) if row["component"].startswith("host/")]
    assert len(hosts) == len(MESH.servers) // 2


def test_an_unknown_event_is_named_with_those_there_are() -> None:
    rng = np.random.default_rng(5)
    with pytest.raises(ValueError, match="no benign event flood; there are congestion"):
        with_event(scene(MESH, rng), rng, "flood")
