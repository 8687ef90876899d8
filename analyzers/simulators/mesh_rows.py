"""Pingmesh's probes as telemetry rows, and the scenarios made of them: ten minutes, a row a minute for each pair."""

from __future__ import annotations

from typing import Any

import numpy as np

from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.mesh import SPINE, Floats, Ints, Mesh, State, build, draw_fault
from analyzers.simulators.mesh_windows import (
    EVENTS,
    FAR,
    LATE,
    MINUTES,
    NEAR,
    RETRIED,
    Outcomes,
    Scene,
    contained,
    outcomes,
    scene,
    width_of,
    with_event,
)
from analyzers.simulators.region import Row, stamp
from analyzers.simulators.truth import happened

PODSETS, PODS, SERVERS = 3, 4, 10
"""120 servers, 2,400 pairs."""
TRIES = 20
"""Probes of a pair in a minute: more than an agent would send, so that so small a network shows small losses."""
ONSET = 1


def mesh_scenario(
    name: str, seed: int, kind: str | None, event: str = ""
) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    """`probe` and `topology` rows of ten minutes, and the truth; the fault begins after the first minute."""
    rng = np.random.default_rng(seed)
    mesh = build(PODSETS, PODS, SERVERS)
    faults = [draw_fault(mesh, rng, kind, ONSET)] if kind else []
    one = scene(mesh, rng, faults)
    one = with_event(one, rng, EVENTS[event]) if event else one
    end = stamp(EPOCH, MINUTES)
    truth = {
        "scenario": name,
        "seed": seed,
        "start": stamp(EPOCH, 0),
        "end": end,
        "faults": [
            {
                "component": fault.component,
                "kind": fault.kind,
                "severity": round(fault.severity, 6),
                "start": stamp(EPOCH, fault.onset),
                "end": end,
            }
            for fault in faults
        ],
        "benign": happened(event, stamp(EPOCH, 0), end),
    }
    return {"topology": topology_rows(one), "probe": probe_rows(one, rng)}, truth


def topology_rows(one: Scene) -> list[Row]:
    """Containment of each component, and the podsets' need of the Spine."""
    rows = []
    for name, parents in sorted(contained(one).items()):
        row: Row = {"time": stamp(EPOCH, 0), "component": name, "labels": {"tier": name.partition("/")[0]}}
        if parents:
            row["parents"] = list(parents)
        if name in one.mesh.podsets:
            row["depends_on"] = [SPINE]
        rows.append(row)
    return rows


def probe_rows(one: Scene, rng: np.random.Generator, tries: int = TRIES) -> list[Row]:
    """In order of time; each pair has its second of the minute."""
    mesh = one.mesh
    most = np.full(len(mesh.src), tries)
    second = rng.integers(0, 60, len(most))
    rows: list[Row] = []
    for stretch in one.stretches:
        for minute in range(stretch.first, stretch.end):
            what = outcomes(one, stretch.state, most, rng)
            times = _times(mesh, what, stretch.state, rng)
            for pair in np.lexsort((np.arange(len(most)), second)).tolist():
                if what.sent[pair]:
                    rows.append(
                        {
                            "time": stamp(EPOCH, minute + int(second[pair]) / 60),
                            "src": mesh.servers[mesh.src[pair]],
                            "dst": mesh.servers[mesh.dst[pair]],
                            "sent": int(what.sent[pair]),
                            "lost": int(what.lost[pair]),
                            "rtt_us": times[pair].tolist(),
                        }
                    )
    return rows


def _times(mesh: Mesh, what: Outcomes, state: State, rng: np.random.Generator) -> list[Ints]:
    """The round-trip times of each pair's answers, in whole microseconds."""
    near = mesh.within_pod
    soon = what.plain - what.late
    drawn: list[tuple[Ints, Floats]] = []
    for kind, times in ((near, NEAR), (~near, FAR)):
        owner = np.repeat(np.arange(len(soon)), np.where(kind, soon, 0))
        drawn.append((owner, times[0] * np.exp(width_of(times) * rng.standard_normal(len(owner)))))
    owner = np.repeat(np.arange(len(soon)), what.late)
    drawn.append((owner, np.exp(rng.uniform(np.log(LATE[0]), np.log(LATE[1]), len(owner)))))
    for count, more in ((what.once, RETRIED[0]), (what.twice, RETRIED[1])):
        owner = np.repeat(np.arange(len(soon)), count)
        drawn.append((owner, more + FAR[0] * np.exp(rng.standard_normal(len(owner)))))
    owners = np.concatenate([one for one, _ in drawn])
    values = np.maximum(1, np.concatenate([one for _, one in drawn])).astype(np.int64)
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(len(soon) + 1))
    ordered = values[order]
    stepped = np.searchsorted(mesh.src, np.flatnonzero(state.stepped))
    ordered[ends[stepped][ends[stepped] < ends[stepped + 1]]] += int(RETRIED[0])
    return np.split(ordered, ends[1:-1])
