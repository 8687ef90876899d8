"""Common component of the paths of late or lossy pairs: the votes of `voting`, over the paths of pairs.

A path consists of its hops, the network cards and hosts of both ends, and for overlay probes also of their containers
and virtual switches. Overlay faults do not reach underlay probes, so that paths of both layers tell these apart.
Lost probes and late answers are judged one after the other; of a probe both are events of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.flows.explain import Rules, explain, tail
from analyzers.builtin.flows.observed import Observed as Flows
from analyzers.builtin.flows.observed import observe
from analyzers.builtin.flows.votes import majority
from analyzers.builtin.paths import texts, whole
from analyzers.builtin.skeletonhunter.observed import MIDDLE, Endpoint, Observed, Pair
from analyzers.builtin.stats.probability import q_values
from analyzers.contract import Params, Paths, Sums, Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

MIN_LOSS = {"loss": 2e-3, "latency": 0.03}
"""Least share of lost probes, and of late answers, that is worth an incident."""
MIN_PAIRS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Charge:
    """A component that is voted for: `names[0]`, the others cannot be told from it. `lost` probes of `carried` are its
    doing, of the pairs in `pairs` (numbers in `Observed.pairs`). `strength` is evidence in nats, or votes, and `needed`
    what it had to reach; votes have no `p_value`.
    """

    names: tuple[str, ...]
    lost: float
    carried: float
    pairs: tuple[int, ...]
    strength: float
    needed: float
    p_value: float | None = None
    q_value: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Voted:
    """Charges; `rest` is the share lost or late on paths without any of them, `rows` how many paths there were."""

    charges: tuple[Charge, ...]
    rest: float
    rows: int


Switch = Callable[[str], str | None]
"""The virtual switch of a host, if it is known."""


def members(name: str, layer: str, endpoints: dict[str, Endpoint], switch: Switch) -> list[str]:
    """Components of its own host that an end of a pair needs."""
    end = endpoints.get(name)
    if end is None:
        return [name]
    if layer != "overlay":
        return [end.nic, end.host]
    software = [container_of(end), switch(end.host)]
    return [end.name, end.nic, end.host, *(one for one in software if one)]


def container_of(end: Endpoint) -> str:
    return end.container if "/" in end.container or not end.container else f"container/{end.container}"


def vote(
    window: Window,
    seen: Observed,
    symptom: str,
    limit: Floats,
    retained: Mask,
    switch: Switch,
    params: Params,
) -> Voted:
    """The votes of one symptom: `loss`, or `latency` above `limit` (ln of microseconds, by pair). Pairs that are not
    `retained` have no vote.
    """
    sums = window.sums["paths" if symptom == "loss" else "path_answers"]
    number = {pair: at for at, pair in enumerate(seen.pairs)}
    columns = (texts(sums, key) for key in ("src", "dst", "layer"))
    own = np.fromiter(map(number.get, zip(*columns, strict=True), repeat(-1)), np.int64, sums.rows)
    chosen = (own >= 0) & retained[own]
    if symptom == "loss":
        tried = np.asarray(sums.values["sent"], dtype=np.float64)
        failed = np.asarray(sums.values["lost"], dtype=np.float64)
    else:
        tried = np.asarray(sums.values["answers"], dtype=np.float64)
        chosen &= np.isfinite(limit[own])
        failed = tried * (MIDDLE[whole(sums, "bin")] > limit[own])
    rows = np.flatnonzero(chosen)
    table, first, group = _extended(sums, rows, own[rows], seen, switch)
    tried = np.bincount(group, tried[rows], minlength=len(first)).astype(np.float64)
    failed = np.bincount(group, failed[rows], minlength=len(first)).astype(np.float64)
    ends = [seen.pairs[at] for at in own[rows[first]].tolist()]
    made = _window(window, table, ends, tried, failed)
    got = observe(made, "")
    if not got.failing.rows or got.components < 2:
        return Voted((), float(failed.sum() / max(tried.sum(), 1.0)), len(first))
    failing = np.flatnonzero((failed > 0) & (np.diff(table.indptr) > 0))
    charges = _charges(got, own[rows[first]][failing], symptom, params)
    outside = ~got.paths.containing([component for component, _ in charges])
    rest = got.paths.failures[outside].sum() / max(got.paths.attempts[outside].sum(), 1.0)
    return Voted(tuple(charge for _, charge in charges), float(rest), len(first))


def _charges(got: Flows, pair: Ints, symptom: str, params: Params) -> list[tuple[int, Charge]]:
    """Each component with its charge; `pair` are the pairs of the failing rows."""
    lost, out = got.failing.lost, []
    if params["method"] == "majority":
        for one in majority(got, MIN_PAIRS):
            rows, names = np.array(one.rows, dtype=np.int64), _names(got, one.component, one.others)
            pairs, carried = tuple(np.unique(pair[rows]).tolist()), float(got.carried[one.component])
            charge = Charge(names, float(lost[rows].sum()), carried, pairs, one.votes, float(MIN_PAIRS))
            out.append((one.component, charge))
        return out
    found = explain(got, Rules(float(params["margin"]), MIN_LOSS[symptom], MIN_PAIRS, bursts=False))
    p_values = np.array([tail(nats) for nats in found.evidence.tolist()])
    q = q_values(p_values, got.components).tolist()
    for at, component in enumerate(found.chosen):
        share = found.share[:, at]
        pairs = tuple(np.unique(pair[share > 0.5]).tolist())
        names, carried = _names(got, component, found.rival[at]), float(got.carried[component])
        needed, evidence = float(found.needed[at]), float(found.evidence[at])
        caused = min(float(share @ lost), carried)
        out.append(
            (component, Charge(names, caused, carried, pairs, evidence, needed, float(p_values[at]), q[at]))
        )
    return out


def _names(got: Flows, component: int, others: Iterable[int]) -> tuple[str, ...]:
    """The component's name, then those of all that cannot be told from it, sorted."""
    more = {name for other in others for name in (got.paths.names[other], *got.paths.alike[other])}
    return (got.paths.names[component], *sorted(more | set(got.paths.alike[component])))


def _extended(sums: Sums, rows: Ints, own: Ints, seen: Observed, switch: Switch) -> tuple[Paths, Ints, Ints]:
    """The paths of some rows with what their ends need, one for each pair (`own`, its number) and set of hops; the
    first of the rows of each, and the path of every row.
    """
    hops = sums.keys["hops"]
    assert isinstance(hops, Paths)
    more = {at: _of_pair(seen.pairs[at], seen.endpoints, switch) for at in np.unique(own).tolist()}
    names = tuple(sorted({*hops.names, *(name for one in more.values() for name in one)}))
    place = {name: at for at, name in enumerate(names)}
    renamed = [place[name] for name in hops.names]
    ends = {at: [place[name] for name in one] for at, one in more.items()}
    known: dict[tuple[int, tuple[int, ...]], int] = {}
    first, sets, numbers = list[int](), list[list[int]](), list[int]()
    # Lists: a path is a few components, for which an array takes ten times as long.
    steps, bounds = hops.indices.tolist(), hops.indptr.tolist()
    begins, run = _runs(hops, rows, own)
    for at, row, pair in zip(begins.tolist(), rows[begins].tolist(), own[begins].tolist(), strict=True):
        passed = tuple(steps[bounds[row] : bounds[row + 1]])
        number = known.setdefault((pair, passed), len(sets))
        if number == len(sets):
            first.append(at)
            sets.append(sorted({*(renamed[one] for one in passed), *ends[pair]}))
        numbers.append(number)
    indptr = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    indices = np.array(list(chain.from_iterable(sets)), dtype=np.int32)
    group = np.array(numbers, dtype=np.int64)[run]
    return Paths(names, indptr, indices), np.array(first, dtype=np.int64), group


def _runs(hops: Paths, rows: Ints, own: Ints) -> tuple[Ints, Ints]:
    """The first of each run of rows of one pair and the same hops, as positions in `rows`, and the run of each row:
    rows that differ only by their bin follow each other.
    """
    if not len(rows):
        return rows, rows
    lengths = np.diff(hops.indptr)[rows]
    ends = np.cumsum(lengths)
    begins = ends - lengths
    at = np.arange(int(ends[-1]))
    flat = hops.indices[np.repeat(hops.indptr[rows] - begins, lengths) + at]
    before = np.maximum(at - np.repeat(lengths, lengths), 0)
    changes = np.concatenate([[0], np.cumsum(flat != flat[before])])
    same = (lengths[1:] == lengths[:-1]) & (own[1:] == own[:-1])
    same &= changes[ends[1:]] == changes[begins[1:]]
    new = np.concatenate([[True], ~same])
    return np.flatnonzero(new), np.cumsum(new) - 1


def _of_pair(pair: Pair, endpoints: dict[str, Endpoint], switch: Switch) -> list[str]:
    return [*members(pair[0], pair[2], endpoints, switch), *members(pair[1], pair[2], endpoints, switch)]


def _window(window: Window, table: Paths, ends: list[Pair], tried: Floats, failed: Floats) -> Window:
    """Window for `voting`, made of these paths."""
    failing = np.flatnonzero(failed > 0)
    lengths = np.diff(table.indptr)
    retained = np.repeat(failed > 0, lengths)
    indptr = np.concatenate([[0], np.cumsum(lengths[failing])]).astype(np.int64)
    keys: dict[str, Any] = {
        "hops": Paths(table.names, indptr, table.indices[retained]),
        "src": tuple(f"{ends[at][0]} {ends[at][2]}" for at in failing.tolist()),
        "dst": tuple(ends[at][1] for at in failing.tolist()),
        "slice": np.zeros(len(failing), dtype=np.int64),
    }
    values = {"sent": tried[failing], "lost": failed[failing], "flows": np.ones(len(failing))}
    sums = {
        "paths": Sums({"hops": table}, {"sent": tried, "lost": failed}, len(table)),
        "failing": Sums(keys, values, len(failing)),
    }
    return Window(window.start, window.end, window.region, "probe", sums)
