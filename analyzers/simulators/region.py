"""The demo world: one region, a healthy hour, then three stories on a data-time axis.

The stories are those of the Deepview talk (Zhang et al., NSDI 2018): a ToR that reboots unplanned, a storage
cluster brought online with a bug that fails a small share of its disks and never looks down, and two failures
at once. The storage cluster goes on failing for a day: whatever happens later happens beside it, and the history
of every later window holds failures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from analyzers.simulators.deepview import Background, Failures, Fault, background, strike
from analyzers.simulators.fleet import Fleet, Preset, build

Row = dict[str, Any]

REGION = Preset(datacentres=2, clusters=8, tors=8, storage=6, units=18.1, hosts=10)
"""2 data centres, 16 compute clusters, 128 ToRs, 12 storage clusters; about 20,000 VMs on 1,280 hosts."""

BACKGROUND = Background(rate=3e-4, hosts=1.0)
MINUTES = 225.0
LASTS = 24 * 60.0
"""Minutes for which the new storage cluster fails; what lies beyond the world's end is drawn by whoever goes on."""
FAILS_AT = 105.0
ONLINE_AT = 10.0  # minute at which the new storage cluster takes its first disks


@dataclass(frozen=True, slots=True)
class World:
    """Rows in the shape of the telemetry kinds: `topology`, `placement`, and `failures` in order of time."""

    topology: list[Row]
    placement: list[Row]
    failures: list[Row]
    truth: dict[str, Any]
    end: datetime
    lasting: tuple[Fault, ...] = ()
    """Faults that go on beyond `end`."""


@dataclass(frozen=True, slots=True)
class Story:
    title: str
    faults: tuple[Fault, ...]


def region_world(seed: int, start: datetime) -> World:
    """The demo world from `start` on (aware); the same seed and start give the same rows."""
    rng = np.random.default_rng(seed)
    fleet = build(REGION, rng)
    tor, new_storage, cluster, other_storage = _cast(fleet, rng)
    stories = (
        Story("A ToR reboots unplanned", (Fault(tor, 0.95, 65, 68, "stop"),)),
        Story(
            "A storage cluster brought online with a bug that fails a small share of its disks, for a day",
            (Fault(new_storage, 0.03, FAILS_AT, FAILS_AT + LASTS),),
        ),
        Story(
            "A compute cluster and a storage cluster fail at the same time",
            (Fault(cluster, 0.30, 190, 215), Fault(other_storage, 0.12, 190, 215)),
        ),
    )
    healthy = background(fleet, rng, BACKGROUND, 0, MINUTES)
    faults = [fault for story in stories for fault in story.faults]
    struck = [strike(fleet, rng, replace(fault, end=min(fault.end, MINUTES))) for fault in faults]
    failures = healthy.plus(*struck)
    return World(
        topology=topology_rows(fleet, start, {new_storage: ONLINE_AT}),
        placement=placement_rows(fleet, start, {new_storage: ONLINE_AT}),
        failures=failure_rows(fleet, failures, start, {new_storage: ONLINE_AT}),
        truth=_truth(seed, start, stories),
        end=start + timedelta(minutes=MINUTES),
        lasting=tuple(fault for fault in faults if fault.end > MINUTES),
    )


def _cast(fleet: Fleet, rng: np.random.Generator) -> tuple[str, str, str, str]:
    """A busy ToR, the newest storage cluster, a compute cluster and a storage cluster of the other data
    centre.
    """
    load = np.bincount(fleet.paths.indices, np.repeat(fleet.units_on, np.diff(fleet.paths.indptr)))
    tors = sorted(fleet.of_kind("tor"), key=lambda name: -load[fleet.column[name]])
    tor = tors[int(rng.integers(0, len(tors) // 2))]
    cluster = f"compute_cluster/d1-c{int(rng.integers(1, REGION.clusters + 1))}"
    other = f"storage_cluster/d2-s{int(rng.integers(1, REGION.storage + 1))}"
    return tor, f"storage_cluster/d1-s{REGION.storage}", cluster, other


def unit_name(unit: int) -> str:
    return f"vm/{unit + 1:05d}"


def placement_rows(fleet: Fleet, start: datetime, online: dict[str, float] | None = None) -> list[Row]:
    """One `placement` row a unit, its host among the components; units wait for what comes `online` later."""
    rows = []
    for unit, (path, host) in enumerate(zip(fleet.path_of.tolist(), fleet.host_of.tolist(), strict=True)):
        members = fleet.paths[path]
        late = max((minute for name, minute in (online or {}).items() if name in members), default=0.0)
        components = sorted([*members, fleet.host_names[host]])
        rows.append({"time": stamp(start, late), "unit": unit_name(unit), "components": components})
    return sorted(rows, key=lambda row: (row["time"], row["unit"]))


def failure_rows(
    fleet: Fleet, failures: Failures, start: datetime, online: dict[str, float] | None = None
) -> list[Row]:
    """`unit_failure` rows in order of time; a unit cannot fail before it is placed."""
    rows = []
    for minute, unit in zip(failures.minute.tolist(), failures.unit.tolist(), strict=True):
        members = fleet.paths[int(fleet.path_of[unit])]
        if all(minute >= late for name, late in (online or {}).items() if name in members):
            rows.append({"time": stamp(start, minute), "unit": unit_name(unit), "symptom": "vhd_io_timeout"})
    return rows


def topology_rows(fleet: Fleet, start: datetime, online: dict[str, float] | None = None) -> list[Row]:
    """One `topology` row a component, what contains it among `parents`, data centres and region included."""
    datacentres = [f"datacentre/d{i + 1}" for i in range(fleet.preset.datacentres)]
    rows = [
        _component("region/region", start),
        *(_component(name, start, "region/region") for name in datacentres),
    ]
    hosts = [fleet.host_names[host] for host in np.unique(fleet.host_of).tolist()]
    for name in (*fleet.components, *hosts):
        at = start + timedelta(minutes=(online or {}).get(name, 0.0))
        rows.append(_component(name, at, _parent(name), *_needs(name)))
    return rows


def _component(name: str, at: datetime, parent: str | None = None, *depends_on: str) -> Row:
    row: Row = {"time": stamp(at, 0), "component": name, "labels": {"tier": name.partition("/")[0]}}
    if parent is not None:
        row["parents"] = [parent]
    if depends_on:
        row["depends_on"] = list(depends_on)
    return row


def _parent(name: str) -> str:
    """Container of a component, read off its name."""
    kind, _, rest = name.partition("/")
    above = {"host": "tor", "tor": "compute_cluster"}
    if kind in above:
        return f"{above[kind]}/{rest.rpartition('-')[0]}"
    return "region/region" if kind == "t3" else f"datacentre/{rest.partition('-')[0]}"


def _needs(name: str) -> tuple[str, ...]:
    kind, _, rest = name.partition("/")
    if kind in ("compute_cluster", "storage_cluster"):
        return (f"t2/{rest.partition('-')[0]}",)
    return ("t3/region",) if kind == "t2" else ()


def stamp(start: datetime, minutes: float) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    at = (start + timedelta(minutes=minutes)).astimezone(UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def truth_of(faults: tuple[Fault, ...], start: datetime) -> list[Row]:
    """The faults as `truth.json` tells them: `kind` says how much fails, `shape` when."""
    return [
        {
            "component": fault.component,
            "kind": kind_of(fault),
            "start": stamp(start, fault.start),
            "end": stamp(start, fault.end),
            "severity": round(fault.severity, 6),
            "shape": fault.shape,
        }
        for fault in faults
    ]


def kind_of(fault: Fault) -> str:
    """`stop` where half of the units or more fail, `faint` below one in a hundred, else `gray`."""
    if fault.severity >= 0.5:
        return "stop"
    return "gray" if fault.severity >= 0.01 else "faint"


def _truth(seed: int, start: datetime, stories: tuple[Story, ...]) -> dict[str, Any]:
    within = [tuple(replace(one, end=min(one.end, MINUTES)) for one in story.faults) for story in stories]
    planted = [
        {"title": story.title, "faults": truth_of(faults, start)}
        for story, faults in zip(stories, within, strict=True)
    ]
    return {
        "scenario": "region_world",
        "seed": seed,
        "start": stamp(start, 0),
        "end": stamp(start, MINUTES),
        "faults": [fault for story in planted for fault in story["faults"]],
        "stories": planted,
    }
