"""Lemon scores and repair rates of a region's fleet, from telemetry and incidents as recorded up to one place in the
log: attempts of jobs, outcomes of paths, failures of units, incidents of nodes that telemetry or people reported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from analyzers.contract import Count, Input, Paths, Reduction, Sum, Sums
from incidents.domain.lemons.attempts import Attempts
from incidents.domain.lemons.repairs import PartIncident, repair_rates
from incidents.domain.lemons.score import Counted, Fleet, Scored, Source, score_fleet
from incidents.domain.values import rfc3339
from incidents.reports.incidents import ReportedIncident, incidents_of
from ingest.queries import Position, is_component, read_window, topology_at

Json = dict[str, Any]
DAYS = 90
"""Length of the window that parts are compared over, in days: most parts fail a few times a year."""
MOST_DAYS = 400
LEVEL = 0.05
"""Share of false lemons among those named that is accepted."""
COMPARED_KINDS = ("node", "host", "gpu", "nic", "disk")
"""Kinds of components of which there are enough alike to compare."""
MODEL_LABELS = ("sku", "model")
"""Labels of the topology that say which parts are peers: the first that a part has."""
GROUP_LABELS = ("batch", "firmware", "driver", "vendor")
MOST_SHOWN = 20

_HISTORY = Input(
    "history",
    (
        Reduction("attempts", "job_attempt", ("nodes", "outcome", "start", "end"), {"attempts": Count()}),
        Reduction(
            "paths",
            "path_outcome",
            ("components",),
            {"attempts": Sum("attempts"), "failures": Sum("failures")},
        ),
        Reduction("units", "unit_failure", ("unit",), {"failures": Count()}),
        Reduction("nodes", "node_incident", ("node",), {"failures": Count()}),
        Reduction("slots", "placement", ("unit", "components"), {"slots": Count()}, or_within=True),
    ),
)
_HOUR = 3_600_000_000  # microseconds


@dataclass(slots=True)
class _History:
    """History of a region's parts. `hours` in jobs, by part; `labels` from the topology; `paths` and `jobs` are
    attempts as (components, tries, failures)."""

    labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    hours: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    jobs: list[tuple[tuple[str, ...], float, float]] = field(default_factory=list)
    paths: list[tuple[tuple[str, ...], float, float]] = field(default_factory=list)
    counts: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))


def lemons_of(region: str, end: datetime, upto: Position, days: int = DAYS, level: float = LEVEL) -> Json:
    """The fleets of a region with their lemons, and the repair rates, over `days` before `end`.

    A part's exposure are its hours in jobs where attempts of jobs cover its peers, else its days in the window.
    """
    start = end - timedelta(days=days)
    history = _history(region, start, end, upto)
    incidents = list(_of_parts(incidents_of(region, "", start, end, upto)))
    for one in incidents:
        if one.counts and one.opened_at >= start:
            counted = history.counts["incident"]
            counted[one.part] = counted.get(one.part, 0.0) + 1
    names = {*history.labels, *history.hours, *(name for found in history.counts.values() for name in found)}
    peers: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in sorted(names):
        kind = name.partition("/")[0]
        labels = history.labels.get(name, {})
        if kind in COMPARED_KINDS:
            peers[kind, next((labels[one] for one in MODEL_LABELS if labels.get(one)), "")].append(name)
    fleets = [
        _fleet(f"{kind} {model}".strip(), parts, history, days, level)
        for (kind, model), parts in peers.items()
    ]
    return {
        "region": region,
        "window": {"start": rfc3339(start), "end": rfc3339(end), "days": days},
        "level": level,
        "fleets": [_fleet_json(one) for one in fleets if one.judged or one.thin],
        "repairs": _repairs(incidents, history),
    }


def _history(region: str, start: datetime, end: datetime, upto: Position) -> _History:
    sums = read_window(_HISTORY, region, start, end, upto)
    found = _History()
    for one in topology_at(region, end, upto).components.values():
        if one.name.partition("/")[0] in COMPARED_KINDS:
            found.labels[one.name] = one.labels
    attempts = sums["attempts"]
    nodes, outcomes = _paths(attempts, "nodes"), attempts.keys["outcome"]
    hours = (np.asarray(attempts.keys["end"]) - np.asarray(attempts.keys["start"])) / _HOUR
    for row in range(attempts.rows):
        count, members = float(attempts.values["attempts"][row]), nodes[row]
        for name in members:
            found.hours[name] += count * float(hours[row])
        if outcomes[row] in ("completed", "failed"):
            found.jobs.append((members, count, count if outcomes[row] == "failed" else 0.0))
    paths = sums["paths"]
    components = _paths(paths, "components")
    for row in range(paths.rows):
        pair = float(paths.values["attempts"][row]), float(paths.values["failures"][row])
        found.paths.append((components[row], *pair))
    for table, key, source in (("units", "unit", "unit_failure"), ("nodes", "node", "node_incident")):
        for name, count in zip(_names(sums[table], key), sums[table].values["failures"], strict=True):
            found.counts[source][name] = float(count)
    _add_slots(sums["slots"], found)
    return found


def _add_slots(slots: Sums, found: _History) -> None:
    """Parts in slots are in use for as long as their node; `slot/gpu-17:3` belongs to `node/gpu-17`."""
    parts = _paths(slots, "components")
    for row, unit in enumerate(_names(slots, "unit")):
        if not unit.startswith("slot/"):
            continue
        node = f"node/{unit.removeprefix('slot/').partition(':')[0]}"
        for name in parts[row]:
            found.labels.setdefault(name, {})
            if node in found.hours:
                found.hours[name] += found.hours[node]


def _paths(sums: Sums, key: str) -> Paths:
    paths = sums.keys[key]
    assert isinstance(paths, Paths)
    return paths


def _names(sums: Sums, key: str) -> Sequence[str]:
    return [str(name) for name in sums.keys[key]]  # type: ignore[union-attr]


# Incidents
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _OfPart:
    """An incident and the part that it is about; `counts` if that part was at fault as far as is known."""

    part: str
    opened_at: datetime
    resolved_at: datetime | None
    found: bool | None
    """Whether the cause was confirmed to be this part; None where nobody said, or said a class such as firmware."""
    unchanged: bool = False

    @property
    def counts(self) -> bool:
        return self.found is not False


def _of_parts(incidents: Iterable[ReportedIncident]) -> Iterator[_OfPart]:
    for one in incidents:
        state = one.state
        if state.merged_into is not None:
            continue
        cause = state.confirmed_cause
        part = cause if cause is not None and is_component(cause) else state.component
        if part is None or part.partition("/")[0] not in COMPARED_KINDS:
            continue
        found = None if cause is None or (cause != "none" and cause != part) else cause == part
        answers = () if state.remediation is None else state.remediation.answers
        kinds = {answer.answer for answer in answers}
        unchanged = "returned" in kinds and "replaced" not in kinds
        yield _OfPart(part, state.opened_at, state.resolved_at, found, unchanged)


def _repairs(incidents: Sequence[_OfPart], history: _History) -> list[Json]:
    resolved = [
        PartIncident(one.part, one.opened_at, one.resolved_at, one.found, one.unchanged)
        for one in incidents
        if one.resolved_at is not None and one.found is not None
    ]
    opened: dict[str, list[datetime]] = defaultdict(list)
    for one in incidents:
        opened[one.part].append(one.opened_at)
    parts = {one.part for one in resolved}
    groups: dict[str, list[str]] = defaultdict(list)
    for part in sorted(parts):
        groups[f"all of kind {part.partition('/')[0]}"].append(part)
        for label in (*MODEL_LABELS, *GROUP_LABELS):
            if value := history.labels.get(part, {}).get(label):
                groups[f"{label} {value}"].append(part)
    rates = repair_rates(resolved, opened, groups)
    repeated = [
        one
        for one in repair_rates(resolved, opened, {part: [part] for part in parts})
        if one.no_fault_found + one.came_back > 1
    ]
    return [
        {
            "name": one.name,
            "incidents": one.incidents,
            "no_fault_found": one.no_fault_found,
            "came_back": one.came_back,
            "returned_unchanged": one.returned_unchanged,
            "share": round(one.share, 4),
            "low": round(one.low, 4),
            "high": round(one.high, 4),
        }
        for one in (*rates[:MOST_SHOWN], *repeated[:MOST_SHOWN])
    ]


# Fleets
# ----------------------------------------------------------------------------------------------------------
def _fleet(kind: str, names: Sequence[str], history: _History, days: int, level: float) -> Fleet:
    places = {name: n for n, name in enumerate(names)}
    sources: dict[str, Source] = {}
    for source, rows in (("job_attempt", history.jobs), ("path_outcome", history.paths)):
        attempts = _attempts(rows, places)
        if attempts is not None:
            sources[source] = attempts
    hours = np.asarray([history.hours.get(name, 0.0) for name in names])
    in_use = (hours > 0).mean() >= 0.9
    exposure = hours if in_use else np.full(len(names), float(days))
    for source in ("unit_failure", "node_incident", "incident"):
        found = history.counts.get(source, {})
        counts = np.asarray([found.get(name, 0.0) for name in names])
        if counts.any():
            sources[source] = Counted(counts, exposure)
    labels: dict[str, list[str]] = defaultdict(list)
    for name in names:
        for label in GROUP_LABELS:
            if value := history.labels.get(name, {}).get(label):
                labels[f"{label} {value}"].append(name)
    return score_fleet(kind, names, sources, labels, level)


def _attempts(
    rows: Sequence[tuple[tuple[str, ...], float, float]], places: Mapping[str, int]
) -> Attempts | None:
    """Those that one of the parts took part in, with these parts only; None without any."""
    chosen = [
        (members, tries, failures)
        for components, tries, failures in rows
        if (members := [places[name] for name in components if name in places])
    ]
    if not chosen:
        return None
    return Attempts(
        np.concatenate([[0], np.cumsum([len(members) for members, _, _ in chosen])]).astype(np.int64),
        np.concatenate([members for members, _, _ in chosen]).astype(np.int64),
        np.asarray([tries for _, tries, _ in chosen]),
        np.asarray([failures for _, _, failures in chosen]),
        len(places),
    )


def _fleet_json(fleet: Fleet) -> Json:
    return {
        "kind": fleet.kind,
        "parts": fleet.size,
        "judged": fleet.judged,
        "thin": dict(fleet.thin),
        "spread": {name: round(value, 3) for name, value in fleet.spread.items()},
        "lemons": [_scored_json(one) for one in fleet.parts if one.lemon],
        "groups": [_scored_json(one) for one in fleet.groups if one.lemon],
        "next": [_scored_json(one) for one in fleet.parts if not one.lemon][:5],
    }


def _scored_json(one: Scored) -> Json:
    return {
        "name": one.name,
        "ratio": round(one.ratio, 2),
        "low": round(one.low, 2),
        "high": round(one.high, 2),
        "p_value": float(f"{one.p_value:.3g}"),
        "q_value": float(f"{one.q_value:.3g}"),
        "members": one.members,
        "same_members": list(one.alike),
        "sources": [
            {
                "source": each.source,
                "failures": round(each.failures, 1),
                "expected": round(each.expected, 1),
                "p_value": float(f"{each.p_value:.3g}"),
            }
            for each in one.evidence
        ],
    }
