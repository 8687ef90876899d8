"""Scenarios to simulate, and their files: one NDJSON file per telemetry kind, and `truth.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from analyzers.simulators import (
    availability_events,
    bounces,
    mesh_windows,
    node_benchmarks,
    observers,
    profiles,
    traces,
    training,
    training_network,
)
from analyzers.simulators.availability_events import outage_scenario, uptime_scenario
from analyzers.simulators.bounces import bounce_scenario
from analyzers.simulators.changes.metrics import EVENTS as CHANGE_EVENTS
from analyzers.simulators.changes.metrics import scenario as change_scenario
from analyzers.simulators.changes.risk import scenario as risk_scenario
from analyzers.simulators.collectives.rows import EVENTS as COLLECTIVE_EVENTS
from analyzers.simulators.collectives.rows import collective_scenario
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
from analyzers.simulators.deepview_events import REPORTED_EVENTS, SHARE, records_of
from analyzers.simulators.fleet import Fleet, M, build
from analyzers.simulators.forecasts.nodes import scenario as forecast_scenario
from analyzers.simulators.mesh_rows import mesh_scenario
from analyzers.simulators.node_benchmarks import scenario as benchmark_scenario
from analyzers.simulators.node_wear import scenario as wear_scenario
from analyzers.simulators.observations import observation_scenario
from analyzers.simulators.outages import BATCH, HEALTHY
from analyzers.simulators.probes import link_scenario
from analyzers.simulators.profiles import scenario as profile_scenario
from analyzers.simulators.region import (
    Row,
    failure_rows,
    placement_rows,
    region_world,
    stamp,
    topology_rows,
    truth_of,
)
from analyzers.simulators.services import application
from analyzers.simulators.services.application import scenario as service_scenario
from analyzers.simulators.trace_rows import trace_scenario
from analyzers.simulators.training import scenario as training_scenario
from analyzers.simulators.truth import check_truth, happened
from analyzers.simulators.uptimes import Month

REGION = replace(M, units=16.0)
"""Preset M with fewer units on a path: about 18,000 in all, files that open in an editor."""

HOURS = 6
"""Length of a Deepview scenario: five healthy hours, then the hour with the fault."""


Rows = Mapping[str, Iterable[Row]]
Made = Callable[[str, int, str], tuple[Rows, Row]]
"""Rows by kind and the truth, from a name, a seed and an event."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`write(seed, out_dir, event)` writes the files into an existing directory and returns their paths. One of its
    `events`, of the benign suite, can happen in it; an empty text is none.
    """

    name: str
    title: str
    help: str
    made: Made
    events: tuple[str, ...] = ()

    def write(self, seed: int, out: Path, event: str = "") -> list[Path]:
        if event and event not in self.events:
            there = f"there are {', '.join(self.events)}" if self.events else "only healthy ones have any"
            raise ValueError(f"{self.name} has no benign event {event!r}; {there}")
        rows, truth = self.made(self.name, seed, event)
        return write_files(out, rows, truth)


def _region(_name: str, seed: int, _event: str) -> tuple[Rows, Row]:
    world = region_world(seed, EPOCH)
    return {
        "topology": world.topology,
        "placement": world.placement,
        "unit_failure": world.failures,
    }, world.truth


def _deepview(kind: str | None) -> Made:
    def made(name: str, seed: int, event: str) -> tuple[Rows, Row]:
        rng = np.random.default_rng(seed)
        fleet = build(REGION, rng)
        last, end = 60.0 * (HOURS - 1), 60.0 * HOURS
        faults = tuple(draw_faults(fleet, rng, kind, last, end) if kind else [])
        healthy = background(fleet, rng, CLUMPED, 0, end + (60 if event else 0))
        failures = healthy.plus(*(strike(fleet, rng, fault) for fault in faults))
        placed = fleet
        if event:
            placed, failures = records_of(fleet, rng, failures, last, event)
        rows, truth = _rows(placed, failures), _truth(name, seed, faults)
        if event == "missing_rows":
            rows = {
                kind: [row for row in all_rows if rng.random() >= SHARE] for kind, all_rows in rows.items()
            }
        return rows, truth | {"benign": happened(event, stamp(EPOCH, last), truth["end"])}

    return made


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


_ENCODER = msgspec.json.Encoder(enc_hook=lambda number: number.item())
"""Writes numbers of numpy as those of Python."""


def write_files(out: Path, rows: Rows, truth: Row) -> list[Path]:
    """One `KIND.ndjson` for each kind, then `truth.json`, in the schema of `truth`."""
    truth = {"benign": [], **truth}
    check_truth(truth)
    written = []
    for kind, lines in rows.items():
        path = out / f"{kind}.ndjson"
        path.write_bytes(_ENCODER.encode_lines(lines))
        written.append(path)
    path = out / "truth.json"
    path.write_text(json.dumps(truth, indent=2) + "\n")
    return [*written, path]


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
        _deepview("stop"),
    ),
    Scenario(
        "deepview_gray",
        "One component fails a little",
        "Six hours of a region of 159 components; in the last one a component fails 1 to 10 % of its units.",
        _deepview("gray"),
    ),
    Scenario(
        "deepview_multi",
        "Several components fail at once",
        "Six hours of a region of 159 components; in the last one two to four components fail together.",
        _deepview("multi"),
    ),
    Scenario(
        "deepview_healthy",
        "Nothing is wrong",
        "Six hours of a region of 159 components with the failures every fleet has, single hosts included.",
        _deepview(None),
        REPORTED_EVENTS,
    ),
    Scenario(
        "netbouncer_links",
        "Links of a Clos network lose probes",
        "512 paths over 288 links, 100 probes each, up to the highest switches and back; 14 links lose 2 to 100 %.",
        lambda name, seed, event: bounce_scenario(name, seed, 14, event),
    ),
    Scenario(
        "netbouncer_healthy",
        "No link loses more than noise",
        "512 paths over 288 links, 100 probes each; one packet in a hundred thousand is lost.",
        lambda name, seed, event: bounce_scenario(name, seed, 0, event),
        bounces.EVENTS,
    ),
    Scenario(
        "pingmesh_podset_down",
        "A podset goes dark",
        "Ten minutes of 120 servers in three podsets that probe each other; after one, nothing of one podset answers.",
        lambda name, seed, event: mesh_scenario(name, seed, "podset_down", event),
    ),
    Scenario(
        "pingmesh_podset",
        "A broadcast storm inside a podset",
        "Ten minutes of 120 servers that probe each other; 5 to 30 % of what touches one podset is answered late.",
        lambda name, seed, event: mesh_scenario(name, seed, "podset_storm", event),
    ),
    Scenario(
        "pingmesh_spine",
        "A Spine switch drops packets silently",
        "Ten minutes of 120 servers that probe each other; one of eight Spine switches drops 1 to 2 % of its packets.",
        lambda name, seed, event: mesh_scenario(name, seed, "spine", event),
    ),
    Scenario(
        "pingmesh_tor",
        "A ToR drops packets",
        "Ten minutes of 120 servers that probe each other; one ToR drops 0.5 to 2 % of its packets.",
        lambda name, seed, event: mesh_scenario(name, seed, "tor_drops", event),
    ),
    Scenario(
        "pingmesh_black_hole",
        "A ToR with a black hole",
        "Ten minutes of 120 servers that probe each other; one ToR drops everything between some pairs of servers.",
        lambda name, seed, event: mesh_scenario(name, seed, "black_hole_1", event),
    ),
    Scenario(
        "pingmesh_healthy",
        "Servers that probe each other",
        "Ten minutes of 120 servers in three podsets; one to eight packets in a hundred thousand are dropped.",
        lambda name, seed, event: mesh_scenario(name, seed, None, event),
        tuple(mesh_windows.EVENTS),
    ),
    Scenario(
        "voting_link",
        "One link loses packets",
        "Half an hour of 14,400 flows between 120 hosts over 464 links; in the last ten minutes one link loses "
        "0.4 to 4 % of its packets.",
        lambda name, seed, event: link_scenario(name, seed, 1, event),
    ),
    Scenario(
        "voting_many",
        "Several links lose packets at once",
        "Half an hour of 14,400 flows between 120 hosts over 464 links; in the last ten minutes four links lose "
        "0.4 to 4 % of their packets.",
        lambda name, seed, event: link_scenario(name, seed, 4, event),
    ),
    Scenario(
        "voting_healthy",
        "No link is bad",
        "Half an hour of 14,400 flows between 120 hosts over 464 links that lose one packet in a million at most.",
        lambda name, seed, event: link_scenario(name, seed, 0, event),
        bounces.EVENTS,
    ),
    Scenario(
        "tor_outages",
        "A batch of ToRs reboots again and again",
        "A month of 128 ToRs: eight with bad firmware go out four times each, the others once in three years; "
        "planned upgrades, and outages that two systems report.",
        lambda name, seed, event: outage_scenario(name, seed, BATCH, event),
    ),
    Scenario(
        "tor_outages_healthy",
        "ToRs that are better than they need to be",
        "A month of 20,000 ToRs of which one in two thousand goes out, with planned upgrades.",
        lambda name, seed, event: outage_scenario(name, seed, HEALTHY, event),
        availability_events.EVENTS,
    ),
    Scenario(
        "uptime_month",
        "A month of units near their storage and far from it",
        "6,000 units over 30 days; far ones fail 11.4 % more often, and three units fail forty times as often as "
        "the others.",
        lambda name, seed, event: uptime_scenario(name, seed, Month(bad=3), event),
    ),
    Scenario(
        "uptime_healthy",
        "A month of units that are all alike",
        "1,500 units over 30 days that meet three nines on average, near their storage and far from it.",
        lambda name, seed, event: uptime_scenario(name, seed, Month(units=1500, farther=0.0), event),
        availability_events.EVENTS,
    ),
    Scenario(
        "trace_slow",
        "A service, or one of its instances, answers late",
        "Seven minutes of traces of twelve services; in the last one the network delays everything that one of them, "
        "or one of its instances, sends and receives by 20 ms to 2 s.",
        lambda name, seed, event: trace_scenario(name, seed, "network_delay", event),
    ),
    Scenario(
        "trace_exception",
        "A service, or one of its instances, fails requests",
        "Seven minutes of traces of twelve services; in the last one a share of one service's requests ends early, "
        "with an error.",
        lambda name, seed, event: trace_scenario(name, seed, "exception", event),
    ),
    Scenario(
        "trace_healthy",
        "Every service does what it always did",
        "Seven minutes of traces of twelve services, with the drift and the change of requests that there always is.",
        lambda name, seed, event: trace_scenario(name, seed, None, event),
        tuple(traces.EVENTS),
    ),
    Scenario(
        "validator_step",
        "Three gray nodes",
        "One round of six benchmarks on 200 nodes; three nodes are 10 % worse in one benchmark of their GPUs.",
        lambda name, seed, event: benchmark_scenario(name, seed, 0.1, 3, event),
    ),
    Scenario(
        "validator_healthy",
        "Nodes that differ a little and are all well",
        "One round of six benchmarks on 200 healthy nodes.",
        lambda name, seed, event: benchmark_scenario(name, seed, 0.0, 0, event),
        tuple(node_benchmarks.EVENTS),
    ),
    Scenario(
        "panorama_gray",
        "A process fails in one context and its heartbeats do not",
        "Two minutes of 12 processes that call each other; in the second one, calls to one of them in one context "
        "fail 30 to 100 % of the time.",
        observation_scenario,
    ),
    Scenario(
        "panorama_overload",
        "A gray failure while two fifths of the observers are overloaded",
        "As panorama_gray, and five of the processes see 20 to 80 % of all their own calls time out.",
        observation_scenario,
    ),
    Scenario(
        "panorama_healthy",
        "Processes that call each other",
        "Two minutes of 12 processes; one call in ten thousand fails.",
        observation_scenario,
        (*observers.EVENTS, "missing_rows"),
    ),
    Scenario(
        "straggler_throttle",
        "A GPU of a training job is throttled",
        "Forty minutes of 16 nodes that train together; in the last ten the clock of one falls by 10 to 60 %.",
        lambda name, seed, event: training_scenario(name, seed, "throttle", event),
    ),
    Scenario(
        "straggler_nic",
        "A network card of a training job is slow",
        "Forty minutes of 16 nodes that train together; in the last ten a link of one pauses and resends.",
        lambda name, seed, event: training_scenario(name, seed, "slow_nic", event),
    ),
    Scenario(
        "straggler_hang",
        "A node of a training job hangs",
        "Forty minutes of 16 nodes that train together; in the last ten one computes nothing and all wait for it.",
        lambda name, seed, event: training_scenario(name, seed, "hang", event),
    ),
    Scenario(
        "straggler_healthy",
        "Nodes that train together",
        "Forty minutes of 16 nodes that differ by one per cent and wander as much.",
        lambda name, seed, event: training_scenario(name, seed, None, event),
        training.EVENTS,
    ),
    Scenario(
        "change_risky",
        "A change like those that went wrong is planned",
        "Half a year of 1,500 changes of five teams with their outcomes; wide rollouts of network settings and evening "
        "changes without a reviewer end badly, and one of the former is planned.",
        lambda name, seed, _event: risk_scenario(name, seed, True),
    ),
    Scenario(
        "change_healthy",
        "A change like those that went well is planned",
        "Half a year of 1,500 changes of five teams with their outcomes; a careful change of a cache is planned.",
        lambda name, seed, _event: risk_scenario(name, seed, False),
    ),
    Scenario(
        "nodes_at_risk",
        "A node shows what came before failures",
        "Seventy days of 200 GPU nodes that fail once in 250 days, six in seven times announced; at the end one shows "
        "memory errors.",
        lambda name, seed, _event: forecast_scenario(name, seed, True),
    ),
    Scenario(
        "nodes_healthy",
        "Failures that nothing announces",
        "Seventy days of 200 GPU nodes that fail once in 250 days, without a sign.",
        lambda name, seed, _event: forecast_scenario(name, seed, False),
    ),
    Scenario(
        "metric_slow",
        "A service answers late",
        "130 minutes of metrics of 16 services that call each other; in the last ten one takes 1.5 to 8 times as long, "
        "and those that call it wait.",
        lambda name, seed, event: service_scenario(name, seed, "delay", event),
    ),
    Scenario(
        "metric_errors",
        "A service fails requests",
        "130 minutes of metrics of 16 services; in the last ten 2 to 40 % of one service's requests fail.",
        lambda name, seed, event: service_scenario(name, seed, "errors", event),
    ),
    Scenario(
        "metric_cpu",
        "A service is short of CPU",
        "130 minutes of metrics of 16 services; in the last ten one uses 1.5 to 5 times the CPU and answers late.",
        lambda name, seed, event: service_scenario(name, seed, "cpu_hog", event),
    ),
    Scenario(
        "metric_healthy",
        "Services that call each other",
        "130 minutes of metrics of 16 services under a load that changes.",
        lambda name, seed, event: service_scenario(name, seed, None, event),
        application.EVENTS,
    ),
    Scenario(
        "changepoint_step",
        "CPU and latency of a service rise",
        "Six hours of five metrics of six services; in the last one CPU and latency of one service rise by four "
        "standard deviations.",
        lambda name, seed, event: change_scenario(name, seed, "step", event),
    ),
    Scenario(
        "changepoint_healthy",
        "Services that do what they always did",
        "Six hours of five metrics of six services.",
        lambda name, seed, event: change_scenario(name, seed, "", event),
        tuple(one for one in CHANGE_EVENTS if one not in ("diurnal", "nightly_job")),
    ),
    Scenario(
        "c4d_hang",
        "A rank of a training job stops before a collective",
        "Two minutes of a job of 32 ranks (tensor 2, pipeline 2, data 8); at 70 s one rank launches nothing more, and "
        "all others wait for it.",
        lambda name, seed, event: collective_scenario(name, seed, "hang", event),
    ),
    Scenario(
        "c4d_stuck",
        "A connection of a training job makes no progress",
        "Two minutes of a job of 32 ranks; at 70 s one transfer between two ranks begins and does not end.",
        lambda name, seed, event: collective_scenario(name, seed, "stuck_channel", event),
    ),
    Scenario(
        "c4d_slow_nic",
        "One side of a NIC of a training job is slow",
        "Two minutes of a job of 32 ranks; from 70 s on all that one rank sends takes 1.5 to 3 times as long.",
        lambda name, seed, event: collective_scenario(name, seed, "slow_tx", event),
    ),
    Scenario(
        "c4d_slow_rank",
        "One rank of a training job computes slowly",
        "Two minutes of a job of 32 ranks; from 70 s on one rank computes 1.15 to 1.6 times as long.",
        lambda name, seed, event: collective_scenario(name, seed, "slow_compute", event),
    ),
    Scenario(
        "c4d_healthy",
        "A training job without a fault",
        "Two minutes of a job of 32 ranks whose clocks differ by seconds; one transfer in twenty meets congestion.",
        lambda name, seed, event: collective_scenario(name, seed, "", event),
        COLLECTIVE_EVENTS,
    ),
    Scenario(
        "skeletonhunter_fault",
        "A fault in the network of a training job",
        "A quarter of an hour of 24 endpoints that probe each other over two layers, with their flow tables; in the "
        "last five minutes one of the 19 published types of faults.",
        lambda name, seed, event: training_network.scenario(name, seed, None, event),
    ),
    Scenario(
        "skeletonhunter_healthy",
        "Endpoints of a training job that probe each other",
        "A quarter of an hour of 24 endpoints that probe each other over two layers, with their flow tables.",
        lambda name, seed, event: training_network.scenario(name, seed, (), event),
        training_network.EVENTS,
    ),
    Scenario(
        "perftracker_nic",
        "One worker's link is capped",
        "A profile of 128 workers in two stages; all_reduce of one of them uses its link less, and takes longer.",
        lambda name, seed, event: profile_scenario(name, seed, "slow_nic", event),
    ),
    Scenario(
        "perftracker_loader",
        "One worker's data comes late",
        "A profile of 128 workers in two stages; one of them spends 5 to 40 % of its time in Python, and all wait.",
        lambda name, seed, event: profile_scenario(name, seed, "slow_loader", event),
    ),
    Scenario(
        "perftracker_healthy",
        "Workers that behave alike",
        "A profile of 128 workers in two stages that differ by five per cent in every function.",
        lambda name, seed, event: profile_scenario(name, seed, None, event),
        profiles.EVENTS,
    ),
    Scenario(
        "selector_trace",
        "Half a year of nodes that wear out",
        "Incidents and weekly sightings of 200 nodes whose spares run out, with six rounds of benchmarks; the faults "
        "are the nodes without spares at the end.",
        lambda name, seed, _event: wear_scenario(name, seed),
    ),
)

SCENARIOS: Mapping[str, Scenario] = MappingProxyType({scenario.name: scenario for scenario in _ALL})
