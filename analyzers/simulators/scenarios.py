"""What can be simulated, and how it is written: one NDJSON file per telemetry kind, and `truth.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from analyzers.simulators.bounces import bounce_scenario
from analyzers.simulators.deepview import (
    CLUMPED,
    EPOCH,
    SLICE_MINUTES,
    Failures,
    Fault,
    background,
    draw_faults,
    strike,
)
from analyzers.simulators.fleet import Fleet, M, build
from analyzers.simulators.mesh_rows import mesh_scenario
from analyzers.simulators.node_benchmarks import scenario as benchmark_scenario
from analyzers.simulators.node_wear import scenario as wear_scenario
from analyzers.simulators.observations import observation_scenario
from analyzers.simulators.outages import BATCH, HEALTHY, Class, outage_scenario
from analyzers.simulators.probes import link_scenario
from analyzers.simulators.region import (
    Row,
    failure_rows,
    placement_rows,
    region_world,
    stamp,
    topology_rows,
    truth_of,
)
from analyzers.simulators.trace_rows import trace_scenario
from analyzers.simulators.truth import check_truth
from analyzers.simulators.uptimes import Month, uptime_scenario

REGION = replace(M, units=16.0)
"""Preset M with fewer units on a path: about 18,000 in all, files that open in an editor."""

HOURS = 6
"""Length of a Deepview scenario: five healthy hours, then the hour with the fault."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`write(seed, out_dir)` writes the files into an existing directory and returns their paths."""

    name: str
    title: str
    help: str
    write: Callable[[int, Path], list[Path]]


def _region(seed: int, out: Path) -> list[Path]:
    world = region_world(seed, EPOCH)
    rows = {"topology": world.topology, "placement": world.placement, "unit_failure": world.failures}
    return write_files(out, rows, world.truth)


def _deepview(name: str, kind: str | None) -> Callable[[int, Path], list[Path]]:
    def write(seed: int, out: Path) -> list[Path]:
        rng = np.random.default_rng(seed)
        fleet = build(REGION, rng)
        last = 60.0 * (HOURS - 1)
        faults = tuple(draw_faults(fleet, rng, kind, last, last + 60) if kind else [])
        healthy = background(fleet, rng, CLUMPED, 0, 60.0 * HOURS)
        failures = healthy.plus(*(strike(fleet, rng, fault) for fault in faults))
        return write_files(out, _rows(fleet, failures), _truth(name, seed, faults))

    return write


def _bounces(name: str, bad: int) -> Callable[[int, Path], list[Path]]:
    def write(seed: int, out: Path) -> list[Path]:
        return write_files(out, *bounce_scenario(name, seed, bad))

    return write


def _links(name: str, bad: int) -> Callable[[int, Path], list[Path]]:
    return lambda seed, out: write_files(out, *link_scenario(name, seed, bad))


def _mesh(name: str, kind: str | None) -> Callable[[int, Path], list[Path]]:
    return lambda seed, out: write_files(out, *mesh_scenario(name, seed, kind))


def _outages(name: str, shape: Class) -> Callable[[int, Path], list[Path]]:
    return lambda seed, out: write_files(out, *outage_scenario(name, seed, shape))


def _uptimes(name: str, month: Month) -> Callable[[int, Path], list[Path]]:
    return lambda seed, out: write_files(out, *uptime_scenario(name, seed, month))


def _observations(name: str) -> Callable[[int, Path], list[Path]]:
    return lambda seed, out: write_files(out, *observation_scenario(name, seed))


def _rows(fleet: Fleet, failures: Failures) -> dict[str, list[Row]]:
    return {
        "topology": topology_rows(fleet, EPOCH),
        "placement": placement_rows(fleet, EPOCH),
        "unit_failure": failure_rows(fleet, failures, EPOCH),
        "path_outcome": path_rows(fleet, failures),
    }


def _truth(name: str, seed: int, faults: tuple[Fault, ...]) -> dict[str, Any]:
    end = stamp(EPOCH, 60 * HOURS)
    return {
        "scenario": name,
        "seed": seed,
        "start": stamp(EPOCH, 0),
        "end": end,
        "faults": truth_of(faults, EPOCH),
    }


def path_rows(fleet: Fleet, failures: Failures) -> list[Row]:
    """The same failures as `path_outcome` rows: a row an hour for each path, with its units and those that
    failed.

    Hosts are named only where `placement` does; a path here is seen as a whole.
    """
    rows = []
    for hour in range(HOURS):
        inside = slice(*np.searchsorted(failures.minute, [60 * hour, 60 * hour + 60]))
        units = np.unique(failures.unit[inside])
        failed = np.bincount(fleet.path_of[units], minlength=len(fleet.paths))
        for path, (attempts, failing) in enumerate(
            zip(fleet.units_on.tolist(), failed.tolist(), strict=True)
        ):
            rows.append(
                {
                    "time": stamp(EPOCH, 60 * hour + SLICE_MINUTES),
                    "components": list(fleet.paths[path]),
                    "attempts": attempts,
                    "failures": failing,
                }
            )
    return rows


def _benchmarks(name: str, severity: float, gray: int) -> Callable[[int, Path], list[Path]]:
    return lambda seed, out: write_files(out, *benchmark_scenario(name, seed, severity, gray))


def _wear(name: str) -> Callable[[int, Path], list[Path]]:
    return lambda seed, out: write_files(out, *wear_scenario(name, seed))


def write_files(out: Path, rows: Mapping[str, Iterable[Row]], truth: Row) -> list[Path]:
    """One `KIND.ndjson` for each kind, then `truth.json`, in the schema of `truth`."""
    check_truth(truth)
    written = []
    for kind, lines in rows.items():
        path = out / f"{kind}.ndjson"
        path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in lines))
        written.append(path)
    path = out / "truth.json"
    path.write_text(json.dumps(truth, indent=2) + "\n")
    return [*written, path]


def _traces(name: str, kind: str | None) -> Callable[[int, Path], list[Path]]:
    return lambda seed, out: write_files(out, *trace_scenario(name, seed, kind))


_ALL = (
    Scenario(
        "region_world",
        "The demo world: a region, a healthy hour and three failures",
        "2 data centres, 128 ToRs, 12 storage clusters, about 20,000 VMs, 3 hours 45 minutes: a ToR reboots, "
        "a storage cluster fails a small share of its disks, and two components fail at once.",
        _region,
    ),
    Scenario(
        "deepview_stop",
        "One component stops",
        "Six hours of a region of 159 components; in the last one a component fails most of its units.",
        _deepview("deepview_stop", "stop"),
    ),
    Scenario(
        "deepview_gray",
        "One component fails a little",
        "Six hours of a region of 159 components; in the last one a component fails 1 to 10 % of its units.",
        _deepview("deepview_gray", "gray"),
    ),
    Scenario(
        "deepview_multi",
        "Several components fail at once",
        "Six hours of a region of 159 components; in the last one two to four components fail together.",
        _deepview("deepview_multi", "multi"),
    ),
    Scenario(
        "deepview_healthy",
        "Nothing is wrong",
        "Six hours of a region of 159 components with the failures every fleet has, single hosts included.",
        _deepview("deepview_healthy", None),
    ),
    Scenario(
        "netbouncer_links",
        "Links of a Clos network lose probes",
        "512 paths over 288 links, 100 probes each, up to the highest switches and back; 14 links lose 2 to 100 %.",
        _bounces("netbouncer_links", 14),
    ),
    Scenario(
        "netbouncer_healthy",
        "No link loses more than noise",
        "512 paths over 288 links, 100 probes each; one packet in a hundred thousand is lost.",
        _bounces("netbouncer_healthy", 0),
    ),
    Scenario(
        "pingmesh_podset_down",
        "A podset goes dark",
        "Ten minutes of 120 servers in three podsets that probe each other; after one, nothing of one podset answers.",
        _mesh("pingmesh_podset_down", "podset_down"),
    ),
    Scenario(
        "pingmesh_podset",
        "A broadcast storm inside a podset",
        "Ten minutes of 120 servers that probe each other; 5 to 30 % of what touches one podset is answered late.",
        _mesh("pingmesh_podset", "podset_storm"),
    ),
    Scenario(
        "pingmesh_spine",
        "A Spine switch drops packets silently",
        "Ten minutes of 120 servers that probe each other; one of eight Spine switches drops 1 to 2 % of its packets.",
        _mesh("pingmesh_spine", "spine"),
    ),
    Scenario(
        "pingmesh_tor",
        "A ToR drops packets",
        "Ten minutes of 120 servers that probe each other; one ToR drops 0.5 to 2 % of its packets.",
        _mesh("pingmesh_tor", "tor_drops"),
    ),
    Scenario(
        "pingmesh_black_hole",
        "A ToR with a black hole",
        "Ten minutes of 120 servers that probe each other; one ToR drops everything between some pairs of servers.",
        _mesh("pingmesh_black_hole", "black_hole_1"),
    ),
    Scenario(
        "pingmesh_healthy",
        "Servers that probe each other",
        "Ten minutes of 120 servers in three podsets; one to eight packets in a hundred thousand are dropped.",
        _mesh("pingmesh_healthy", None),
    ),
    Scenario(
        "voting_link",
        "One link loses packets",
        "Half an hour of 14,400 flows between 120 hosts over 464 links; in the last ten minutes one link loses "
        "0.4 to 4 % of its packets.",
        _links("voting_link", 1),
    ),
    Scenario(
        "voting_many",
        "Several links lose packets at once",
        "Half an hour of 14,400 flows between 120 hosts over 464 links; in the last ten minutes four links lose "
        "0.4 to 4 % of their packets.",
        _links("voting_many", 4),
    ),
    Scenario(
        "voting_healthy",
        "No link is bad",
        "Half an hour of 14,400 flows between 120 hosts over 464 links that lose one packet in a million at most.",
        _links("voting_healthy", 0),
    ),
    Scenario(
        "tor_outages",
        "A batch of ToRs reboots again and again",
        "A month of 128 ToRs: eight with bad firmware go out four times each, the others once in three years; "
        "planned upgrades, and outages that two systems report.",
        _outages("tor_outages", BATCH),
    ),
    Scenario(
        "tor_outages_healthy",
        "ToRs that are better than they need to be",
        "A month of 20,000 ToRs of which one in two thousand goes out, with planned upgrades.",
        _outages("tor_outages_healthy", HEALTHY),
    ),
    Scenario(
        "uptime_month",
        "A month of units near their storage and far from it",
        "6,000 units over 30 days; far ones fail 11.4 % more often, and three units fail forty times as often as "
        "the others.",
        _uptimes("uptime_month", Month(bad=3)),
    ),
    Scenario(
        "trace_slow",
        "A service, or one of its instances, answers late",
        "Seven minutes of traces of twelve services; in the last one the network delays everything that one of them, "
        "or one of its instances, sends and receives by 20 ms to 2 s.",
        _traces("trace_slow", "network_delay"),
    ),
    Scenario(
        "trace_exception",
        "A service, or one of its instances, fails requests",
        "Seven minutes of traces of twelve services; in the last one a share of one service's requests ends early, "
        "with an error.",
        _traces("trace_exception", "exception"),
    ),
    Scenario(
        "trace_healthy",
        "Every service does what it always did",
        "Seven minutes of traces of twelve services, with the drift and the change of requests that there always is.",
        _traces("trace_healthy", None),
    ),
    Scenario(
        "validator_step",
        "Three gray nodes",
        "One round of six benchmarks on 200 nodes; three nodes are 10 % worse in one benchmark of their GPUs.",
        _benchmarks("validator_step", 0.1, 3),
    ),
    Scenario(
        "validator_healthy",
        "Nodes that differ a little and are all well",
        "One round of six benchmarks on 200 healthy nodes.",
        _benchmarks("validator_healthy", 0.0, 0),
    ),
    Scenario(
        "panorama_gray",
        "A process fails in one context and its heartbeats do not",
        "Two minutes of 12 processes that call each other; in the second one, calls to one of them in one context "
        "fail 30 to 100 % of the time.",
        _observations("panorama_gray"),
    ),
    Scenario(
        "panorama_overload",
        "A gray failure while two fifths of the observers are overloaded",
        "As panorama_gray, and five of the processes see 20 to 80 % of all their own calls time out.",
        _observations("panorama_overload"),
    ),
    Scenario(
        "panorama_healthy",
        "Processes that call each other",
        "Two minutes of 12 processes; one call in ten thousand fails.",
        _observations("panorama_healthy"),
    ),
    Scenario(
        "selector_trace",
        "Half a year of nodes that wear out",
        "Incidents and weekly sightings of 200 nodes whose spares run out, with six rounds of benchmarks; the faults "
        "are the nodes without spares at the end.",
        _wear("selector_trace"),
    ),
)

SCENARIOS: Mapping[str, Scenario] = MappingProxyType({scenario.name: scenario for scenario in _ALL})
