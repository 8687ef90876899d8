"""Snapshots of forwarding: for each class of flows the paths that it takes, as a list, a graph or Batfish's traces."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec

MOST_BYTES = 512 * 2**20
MOST_CLASSES = 1_000_000
FORMAT = "dossier.forwarding/1"
ARRIVED = frozenset({"ACCEPTED", "DELIVERED_TO_SUBNET", "EXITS_NETWORK"})
"""Dispositions of Batfish's traces that arrive; LOOP goes round, and all others drop the packet."""

Location = Annotated[str, msgspec.Meta(min_length=1, max_length=255, pattern=r"^[^\s\"]+$")]
Path = tuple[str, ...]


class InvalidSnapshotError(ValueError):
    """The snapshot cannot be read; the message says where and why."""


class _Graph(msgspec.Struct, forbid_unknown_fields=True):
    starts: Annotated[list[Location], msgspec.Meta(min_length=1)]
    edges: list[tuple[Location, Location]]
    ends: list[Location]


class _Node(msgspec.Struct):
    name: Location


class _Hop(msgspec.Struct):
    node: Location | _Node


class _Trace(msgspec.Struct):
    disposition: str
    hops: list[_Hop]


class _Class(msgspec.Struct, forbid_unknown_fields=True, rename={"name": "class"}):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    labels: dict[str, str] = {}
    paths: list[Annotated[list[Location], msgspec.Meta(min_length=1)]] | None = None
    graph: _Graph | None = None
    traces: list[_Trace] | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    classes: list[_Class]
    format: str = FORMAT
    locations: list[Location] = []


@dataclass(frozen=True, slots=True)
class Forwarding:
    """Paths of a class of flows, as a deterministic automaton whose letters are locations.

    `steps[state]` pairs a location with the next state, the first state is 0; a path is complete in one of `finals`.
    Equal forwarding compares and hashes equal where it was given in the same form.
    """

    steps: tuple[tuple[tuple[str, int], ...], ...] = ((),)
    finals: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class FlowClass:
    labels: Mapping[str, str]
    forwarding: Forwarding


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Classes of flows by name, and all locations of the network that the file knows."""

    classes: Mapping[str, FlowClass]
    locations: frozenset[str]


def read_snapshot(name: str, raw: bytes) -> Snapshot:
    """The snapshot of a JSON or CSV file. Raises InvalidSnapshotError; `name` is that of the file."""
    if len(raw) > MOST_BYTES:
        raise InvalidSnapshotError(f"{name}: larger than {MOST_BYTES:,} bytes")
    try:
        file = _json(raw) if raw.lstrip()[:1] in (b"{", b"[") else _csv(raw)
        return _snapshot(file)
    except (msgspec.ValidationError, msgspec.DecodeError, ValueError, csv.Error) as error:
        raise InvalidSnapshotError(f"{name}: {error}") from error


def _json(raw: bytes) -> _File:
    file = msgspec.json.decode(raw, type=_File)
    if file.format != FORMAT:
        raise ValueError(f"format {file.format[:80]!r} is not {FORMAT}")
    return file


def _csv(raw: bytes) -> _File:
    """One row for each path of a class: `class`, `path` (locations separated by spaces) and a column for each label."""
    reader = csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline=""), strict=True)
    head = [one.strip() for one in next(reader, [])]
    if head[:2] != ["class", "path"] or len(set(head)) != len(head):
        raise ValueError("neither JSON nor CSV with a first line `class,path` and a column for each label")
    labels: dict[str, dict[str, str]] = {}
    paths: dict[str, list[list[str]]] = defaultdict(list)
    for row in reader:
        if not row:
            continue
        if len(row) != len(head):
            raise ValueError(f"line {reader.line_num}: {len(row)} columns instead of {len(head)}")
        of_row = dict(zip(head[2:], row[2:], strict=True))
        if labels.setdefault(row[0], of_row) != of_row:
            raise ValueError(f"line {reader.line_num}: class {row[0][:80]} has other labels than before")
        if path := row[1].split():
            paths[row[0]].append(path)
    classes = [{"class": name, "labels": of, "paths": paths[name]} for name, of in labels.items()]
    return msgspec.convert({"classes": classes}, type=_File)


def _snapshot(file: _File) -> Snapshot:
    if len(file.classes) > MOST_CLASSES:
        raise ValueError(f"{len(file.classes):,} classes are more than {MOST_CLASSES:,}")
    classes: dict[str, FlowClass] = {}
    locations = set(file.locations)
    for one in file.classes:
        if one.name in classes:
            raise ValueError(f"class {one.name!r} is there twice")
        made = _forwarding(one)
        classes[one.name] = FlowClass({**one.labels, "class": one.name}, made)
        locations.update(location for step in made.steps for location, _ in step)
    return Snapshot(classes, frozenset(locations))


def _forwarding(one: _Class) -> Forwarding:
    given = [form for form in (one.paths, one.graph, one.traces) if form is not None]
    if len(given) != 1:
        raise ValueError(f"class {one.name!r} needs one of `paths`, `graph` and `traces`, has {len(given)}")
    if one.graph is not None:
        return _of_graph(one.name, one.graph)
    if one.traces is not None:
        return _of_paths([_path(trace) for trace in one.traces])
    return _of_paths([tuple(path) for path in one.paths or ()])


def _path(trace: _Trace) -> Path:
    path = tuple(hop.node if isinstance(hop.node, str) else hop.node.name for hop in trace.hops)
    if trace.disposition in ARRIVED:
        return path
    return (*path, "loop" if trace.disposition == "LOOP" else "drop")


def _of_paths(paths: Iterable[Path]) -> Forwarding:
    """The tree of the paths; paths in sorted order, so that equal sets are equal trees."""
    steps: list[dict[str, int]] = [{}]
    finals = set()
    for path in sorted(set(paths)):
        state = 0
        for location in path:
            if location not in steps[state]:
                steps[state][location] = len(steps)
                steps.append({})
            state = steps[state][location]
        finals.add(state)
    return Forwarding(tuple(tuple(step.items()) for step in steps), frozenset(finals))


def _of_graph(name: str, graph: _Graph) -> Forwarding:
    """A graph as an automaton whose states are its locations. Where no end can be reached, a path ends with `loop` if
    it goes round and with `drop` if it stops."""
    following: dict[str, set[str]] = defaultdict(set)
    before: dict[str, set[str]] = defaultdict(set)
    for start, end in graph.edges:
        following[start].add(end)
        before[end].add(start)
    nodes = sorted({*graph.starts, *graph.ends, *following, *before})
    if taken := {"drop", "loop"} & set(nodes):
        raise ValueError(f"class {name!r}: {taken.pop()} cannot be a location of a graph; leave a dead end")
    arriving = _reach(graph.ends, before)
    stopping = _reach([one for one in nodes if not following[one] and one not in graph.ends], before)
    number = {one: place for place, one in enumerate(nodes, 1)}
    complete = len(nodes) + 1
    steps: list[tuple[tuple[str, int], ...]] = [
        tuple((one, number[one]) for one in sorted(set(graph.starts)))
    ]
    for one in nodes:
        if one in arriving:
            steps.append(tuple((other, number[other]) for other in sorted(following[one])))
        else:
            ends = ["drop"] if one in stopping else []
            ends += [] if one in stopping and not _goes_round(one, following) else ["loop"]
            steps.append(tuple((end, complete) for end in ends))
    return Forwarding((*steps, ()), frozenset({complete, *(number[one] for one in graph.ends)}))


def _reach(starts: Iterable[str], edges: Mapping[str, set[str]]) -> set[str]:
    found, waiting = set(starts), list(starts)
    while waiting:
        for one in edges.get(waiting.pop(), ()):
            if one not in found:
                found.add(one)
                waiting.append(one)
    return found


def _goes_round(start: str, following: Mapping[str, set[str]]) -> bool:
    """Whether a cycle can be reached: the reachable graph has no topological order."""
    reachable = _reach([start], following)
    left = {one: following[one] & reachable for one in reachable if one in following}
    while done := {one for one, nexts in left.items() if not nexts & left.keys()}:
        for one in done:
            del left[one]
    return bool(left)
