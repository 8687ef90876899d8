"""Simulated flows: windows cut directly equal the rows reduced, and the truth about them holds."""

import json
from datetime import timedelta

import numpy as np
import pytest

from analyzers.builtin.voting import ANALYZER
from analyzers.contract import Paths, Sums
from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.probes import link_scenario, probe_rows
from analyzers.simulators.voting import BENIGN, Fault, benign_traffic, break_pair, cut, draw_traffic, run
from ingest.telemetry.decode.body import decode_ndjson
from ingest.telemetry.decode.columns import Bounds
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.windows import offline
from tests.unit.analyzers.voting.cases import FABRIC, LOAD


def same(one: Sums, other: Sums) -> bool:
    """The names that a table of paths knows may be more than its rows use."""
    for name, key in one.keys.items():
        theirs = other.keys[name]
        if isinstance(key, Paths) or isinstance(theirs, Paths):
            assert isinstance(key, Paths)
            assert isinstance(theirs, Paths)
            assert [key[r] for r in range(len(key))] == [theirs[r] for r in range(len(theirs))]
        else:
            assert list(key) == list(theirs)
    return all(value.tolist() == other.values[name].tolist() for name, value in one.values.items())


def test_windows_agree_with_rows_reduced_by_the_offline_reader() -> None:
    rng = np.random.default_rng(8)
    traffic = draw_traffic(FABRIC, rng, LOAD)
    fault = Fault(np.array([FABRIC.links.index("link/p1-t1~p1-a2")]), np.array([0.1]))
    losses = run(traffic, rng, 1e-3, fault)
    body = "".join(json.dumps(row) + "\n" for row in probe_rows(traffic, losses, 0.0)).encode()
    rows = decode_ndjson(KINDS["probe"], body, "default", Bounds())
    read = offline.reduce(ANALYZER.inputs[0], {"probe": rows}, EPOCH, EPOCH + timedelta(seconds=30))
    window = cut(traffic, losses, fault).window
    assert all(same(window.sums[name], read[name]) for name in ("paths", "failing"))


def test_the_truth_names_the_link_that_lost_each_failing_flows_packets() -> None:
    rng = np.random.default_rng(9)
    traffic = draw_traffic(FABRIC, rng, LOAD)
    fault = Fault(np.array([30, 40]), np.array([0.1, 0.2]))
    made = cut(traffic, run(traffic, rng, 0.0, fault), fault)
    hops = made.window.sums["failing"].keys["hops"]
    assert isinstance(hops, Paths)
    assert made.by_fault.all()
    assert all(made.lossy[r] in hops[r] for r in range(len(hops)))


def test_bad_links_come_worst_first() -> None:
    rng = np.random.default_rng(9)
    traffic = draw_traffic(FABRIC, rng, LOAD)
    fault = Fault(np.array([30, 40]), np.array([0.1, 0.2]))
    assert cut(traffic, run(traffic, rng, 0.0, fault), fault).bad == (FABRIC.links[40], FABRIC.links[30])


def test_flows_go_to_other_racks() -> None:
    traffic = draw_traffic(FABRIC, np.random.default_rng(1), LOAD)
    hosts = FABRIC.shape.hosts
    assert (traffic.src // hosts != traffic.dst // hosts).all()


@pytest.mark.simulated
@pytest.mark.parametrize(("kind", "share"), [("missing_rows", 0.95), ("clock_step", 1.05), ("drain", 1.0)])
def test_benign_events_change_how_much_is_seen(kind: str, share: float) -> None:
    counts = [len(benign_traffic(FABRIC, np.random.default_rng(n), kind, LOAD)[0]) for n in range(20)]
    assert np.mean(counts) == pytest.approx(share * FABRIC.hosts * LOAD.flows, rel=0.04)


def test_an_emptied_rack_neither_sends_nor_receives() -> None:
    traffic, _ = benign_traffic(FABRIC, np.random.default_rng(2), "upgrade", LOAD)
    racks = FABRIC.hosts // FABRIC.shape.hosts
    busy = set((traffic.src // FABRIC.shape.hosts).tolist()) | set(
        (traffic.dst // FABRIC.shape.hosts).tolist()
    )
    assert len(busy) == racks - 1


def test_a_broken_pair_loses_all_it_sends_and_nobody_else_does() -> None:
    rng = np.random.default_rng(3)
    traffic, fault = benign_traffic(FABRIC, rng, "broken_pair", LOAD)
    losses = break_pair(traffic, run(traffic, rng, 0.0, fault), 5)
    failing = np.flatnonzero(losses.lost)
    assert {(traffic.src[f], traffic.dst[f]) for f in failing} == {(traffic.src[5], traffic.dst[5])}
    assert (losses.lost[failing] == traffic.sent[failing]).all()


def test_an_unknown_benign_event_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=f"no benign event 'flood'; there are {BENIGN[0]}"):
        benign_traffic(FABRIC, np.random.default_rng(0), "flood", LOAD)


@pytest.mark.simulated
def test_a_scenario_tells_its_faults_and_only_loses_packets_in_their_time() -> None:
    rows, truth = link_scenario("voting_many", 1, 4)
    assert len(truth["faults"]) == 4
    start = min(fault["start"] for fault in truth["faults"])
    early = sum(row["lost"] for row in rows["probe"] if row["time"] < start)
    assert early < 20 < sum(row["lost"] for row in rows["probe"])
