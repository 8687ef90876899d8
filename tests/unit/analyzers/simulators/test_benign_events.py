"""The benign suite does to telemetry what it says, and nothing else."""

import numpy as np
import pytest

from analyzers.contract import Paths, Window
from analyzers.simulators import availability_events, bounces, observers, outages, traces, uptimes
from analyzers.simulators.deepview import INDEPENDENT, Background
from analyzers.simulators.deepview_events import EVENTS, eventful_hour
from analyzers.simulators.fabric import build, fat_tree
from analyzers.simulators.fleet import Fleet, S
from analyzers.simulators.fleet import build as build_fleet
from analyzers.simulators.voting import Load, draw_traffic, misnamed
from ingest.telemetry.windows.reductions import STILL_GOING

pytestmark = pytest.mark.simulated

RECORD = outages.draw(outages.Class(devices=200, monthly=0.5), 1)
LIFE = uptimes.draw(uptimes.Month(units=60, days=4, daily=0.5), 1)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def hour(event: str, kind: Background = INDEPENDENT, seed: int = 2) -> Window:
    drawn = np.random.default_rng(seed)
    return eventful_hour(build_fleet(S, drawn), drawn, kind, event)


def fleet() -> Fleet:
    return build_fleet(S, np.random.default_rng(2))


def placed(window: Window) -> tuple[Paths, int]:
    sums = window.sums["paths"]
    sets = sums.keys["components"]
    assert isinstance(sets, Paths)
    return sets, int(np.asarray(sums.values["attempts"]).sum())


def used(window: Window, kind: str) -> set[str]:
    paths, _ = placed(window)
    return {
        paths.names[i] for i in np.unique(paths.indices).tolist() if paths.names[i].startswith(f"{kind}/")
    }


def test_an_upgrade_empties_one_cluster_and_moves_nobody() -> None:
    before, now = hour(""), hour("upgrade")
    assert len(used(before, "compute_cluster") - used(now, "compute_cluster")) == 1
    assert placed(now)[1] < placed(before)[1]


def test_a_drain_empties_one_tor_and_keeps_every_unit() -> None:
    before, now = hour(""), hour("drain")
    assert len(used(before, "tor") - used(now, "tor")) == 1
    assert placed(now)[1] == placed(before)[1]


def test_a_drained_host_that_dies_takes_nobody_with_it() -> None:
    failing = hour("drain", Background(rate=0.0, hosts=60), seed=4).sums["failing"]
    paths = failing.keys["components"]
    assert isinstance(paths, Paths)
    row = np.repeat(np.arange(len(paths)), np.diff(paths.indptr))
    host = np.array([name.startswith("host/") for name in paths.names])[paths.indices]
    lost = np.bincount(paths.indices[host], np.asarray(failing.values["failures"])[row[host]])
    # A host takes 1 to 20 units with it; those that left it before would fail alone, each somewhere else.
    assert np.mean(lost[lost > 0] == 1) < 0.15


@pytest.mark.parametrize("event", ["clock_step", "agent_crash"])
def test_what_happens_to_agents_moves_no_unit(event: str) -> None:
    before, now = hour(""), hour(event)
    assert placed(now)[1] == placed(before)[1]


def test_rows_that_are_lost_leave_fewer_units() -> None:
    assert placed(hour("missing_rows"))[1] == pytest.approx(0.95 * fleet().units, rel=0.03)


def test_a_stale_topology_keeps_the_number_of_units() -> None:
    assert placed(hour("stale_topology"))[1] == fleet().units


@pytest.mark.parametrize("event", EVENTS)
def test_history_says_nothing_of_the_event(event: str) -> None:
    for told, plain in zip(hour(event).history, hour("").history, strict=True):
        assert np.array_equal(
            told.sums["failing"].values["failures"], plain.sums["failing"].values["failures"]
        )


def test_an_unknown_event_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="no benign event 'flood'; there are upgrade, drain"):
        hour("flood")


@pytest.mark.parametrize("event", ["upgrade", "drain"])
def test_a_switch_that_is_taken_out_is_on_no_probed_path(event: str) -> None:
    one = bounces.bounce(4, 0, rng())
    told = bounces.with_event(one, rng(), event)
    gone = np.setdiff1d(one.routes.indices, told.routes.indices)
    devices = [set(one.fabric.links[link].partition("/")[2].split("~")) for link in gone.tolist()]
    assert set.intersection(*devices)


def test_probes_of_a_wrong_clock_are_counted_twice_for_few_probers() -> None:
    one = bounces.bounce(4, 0, rng())
    told = bounces.with_event(one, rng(), "clock_step")
    doubled = told.sent == 2 * one.sent
    assert len(np.unique(one.routes.padded()[doubled, 0])) == 1


def test_stale_paths_begin_at_their_prober() -> None:
    one = bounces.bounce(4, 0, rng())
    told = bounces.with_event(one, rng(), "stale_topology")
    assert np.array_equal(told.routes.padded()[:, 0], one.routes.padded()[:, 0])


def test_misnamed_flows_keep_their_hosts_and_packets() -> None:
    fabric = build(fat_tree(4))
    traffic = draw_traffic(fabric, rng(), Load(20))
    told = misnamed(traffic, rng(), share=0.5)
    assert np.array_equal(told.routes.padded()[:, 0], traffic.routes.padded()[:, 0])
    changed = (told.routes.padded() != traffic.routes.padded()).any(axis=1)
    assert 0.1 < changed.mean() < 0.5


def test_planned_work_on_devices_is_told_as_planned() -> None:
    window = availability_events.device_month(RECORD, rng(), "upgrade")
    planned = np.asarray(window.sums["outages"].keys["planned"])
    assert planned.sum() == pytest.approx(100, rel=0.3)


@pytest.mark.parametrize("event", ["agent_crash", "missing_rows"])
def test_outages_whose_end_is_lost_go_on(event: str) -> None:
    plain, told = (availability_events.device_month(RECORD, rng(), one) for one in ("", event))
    going = [int((np.asarray(one.sums["outages"].keys["end"]) == STILL_GOING).sum()) for one in (plain, told)]
    assert going[0] < going[1]


def test_a_stale_topology_knows_fewer_devices() -> None:
    window = availability_events.device_month(RECORD, rng(), "stale_topology")
    assert 0.9 * 200 < window.sums["fleet"].rows < 200


def test_units_are_upgraded_as_planned() -> None:
    window = availability_events.unit_month(LIFE, rng(), "upgrade")
    assert window.sums["outages"].rows == 60
    assert window.input == "uptime_and_outage"


@pytest.mark.parametrize("event", ["drain", "agent_crash", "missing_rows"])
def test_less_is_told_of_units(event: str) -> None:
    def told(window: Window) -> int:
        sums = window.sums["uptimes"]
        return int((np.asarray(sums.keys["end"]) - np.asarray(sums.keys["start"])).sum())

    assert told(availability_events.unit_month(LIFE, rng(), event)) < told(uptimes.window_of(LIFE))


def test_a_drained_process_is_not_called_and_its_heart_beats() -> None:
    system = observers.build(observers.SMALL, rng())
    fault = observers.Fault("drain", 3, 5.0)
    reports = observers.observe(system, rng(), 10.0, [fault], observers.Transport(0.0, 0.0))
    late = (system.subject[reports.cell] == 3) & (reports.time > 6.0)
    assert late.any()
    assert system.is_heartbeat[reports.cell[late]].all()


@pytest.mark.parametrize("event", ["drain", "agent_crash"])
def test_one_replica_is_not_seen_any_more(event: str) -> None:
    system = traces.build_system(rng())
    seen = [set(traces.record(system, rng(), 0, benign=one).columns["pod"].tolist()) for one in (None, event)]
    assert len(seen[0] - seen[1]) == 1


def test_a_system_without_second_replicas_has_none_to_drain() -> None:
    system = traces.build_system(rng(), replicas=1)
    with pytest.raises(ValueError, match="two replicas"):
        traces.record(system, rng(), 0, benign="drain")
