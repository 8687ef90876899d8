"""Observations of Pingmesh's servers in a window, drawn as counts, and the benign events that must blame nobody.
Pure.

Counts are drawn for stretches of minutes in which the network stays the same. Bins are given by whoever reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from analyzers.contract import Sums, Window
from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.mesh import DATACENTRE, SPINE, Fault, Floats, Ints, Mask, Mesh, State, healthy
from analyzers.simulators.tables import paths_of

MINUTES = 10
TRIES = 20
"""Probes of a pair in ten minutes."""
NEAR, FAR = (216.0, 1260.0), (268.0, 1340.0)
"""Published P50 and P99 in microseconds, within a pod and between pods."""
LATE = (5_000.0, 60_000.0)
"""Range of late times, uniform in the logarithm."""
HEAVY = 1.5e-3
"""Share of a healthy network's answers that are late (published P99.9: 11 to 23 ms)."""
AGAIN = 0.5
RETRIED = (3.0e6, 9.0e6)

BENIGN = (
    "congestion",
    "dead_servers",
    "planned_drain",
    "clock_step",
    "agent_crash",
    "missing_rows",
    "stale_topology",
)

EVENTS = MappingProxyType(
    {
        "drain": "planned_drain",
        "clock_step": "clock_step",
        "agent_crash": "agent_crash",
        "missing_rows": "missing_rows",
        "stale_topology": "stale_topology",
    }
)
"""Names here of the events of the benign suite; a planned upgrade is a drain."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """The minutes [first, end) and the state of the network in them."""

    first: int
    end: int
    state: State


@dataclass(slots=True, eq=False)
class Scene:
    """A window to be drawn: the stretches one after the other, `arriving` (share of the rows that arrive) and what the
    topology says: the pod of each server, -1 if it names none.
    """

    mesh: Mesh
    stretches: list[Stretch]
    reported_pod: Ints
    arriving: float = 1.0
    faults: list[Fault] = field(default_factory=list)

    @property
    def minutes(self) -> int:
        return self.stretches[-1].end


def scene(
    mesh: Mesh, rng: np.random.Generator, faults: Sequence[Fault] = (), minutes: int = MINUTES
) -> Scene:
    """A healthy network, with the faults from their onsets on."""
    state = healthy(mesh, rng)
    marks = sorted({0, minutes, *(min(max(fault.onset, 0), minutes) for fault in faults)})
    stretches = []
    for first, end in pairwise(marks):
        now = state
        for fault in faults:
            now = fault.strike(now) if fault.onset <= first else now
        stretches.append(Stretch(first, end, now))
    return Scene(mesh, stretches, mesh.pod.copy(), faults=list(faults))


def with_event(one: Scene, rng: np.random.Generator, event: str) -> Scene:
    """The scene with a benign event of `BENIGN` on top."""
    mesh, servers = one.mesh, len(one.mesh.servers)
    if event == "missing_rows":
        return replace(one, arriving=0.95)
    if event == "stale_topology":
        wrong = rng.random(servers) < 0.02
        return replace(
            one, reported_pod=np.where(wrong, rng.integers(0, len(mesh.pods), servers), one.reported_pod)
        )
    if event == "planned_drain":
        gone = mesh.podset == rng.integers(len(mesh.podsets))
        drained = _changed(one, 0, one.minutes, lambda state: replace(state, dead=state.dead | gone))
        return replace(drained, reported_pod=np.where(gone, -1, one.reported_pod))
    first = int(rng.integers(0, max(1, one.minutes - 2)))
    if event == "congestion":
        pods = rng.choice(len(mesh.pods), min(len(mesh.pods), int(rng.integers(1, 4))), replace=False)
        busy, share = mesh.touching(np.isin(mesh.pod, pods)), float(rng.uniform(0.05, 0.5))
        end = min(one.minutes, first + int(rng.integers(1, 3)))
        return _changed(one, first, end, lambda state: replace(state, slow=np.where(busy, share, state.slow)))
    chosen: Mask = rng.random(servers) < 0.02
    if event == "clock_step":
        chosen = mesh.pod == rng.integers(len(mesh.pods))
        return _changed(one, first, first + 1, lambda state: replace(state, stepped=state.stepped | chosen))
    if event == "agent_crash":
        chosen |= mesh.pod == rng.integers(len(mesh.pods))
        return _changed(one, first, one.minutes, lambda state: replace(state, mute=state.mute | chosen))
    if event == "dead_servers":
        return _changed(one, first, one.minutes, lambda state: replace(state, dead=state.dead | chosen))
    raise ValueError(f"there is no benign event {event}; there are {', '.join(BENIGN)}")


def _changed(one: Scene, first: int, end: int, change: Any) -> Scene:
    """The scene with a changed state in the minutes [first, end)."""
    out = []
    for stretch in one.stretches:
        cuts = sorted(
            {stretch.first, stretch.end, *(m for m in (first, end) if stretch.first < m < stretch.end)}
        )
        for low, high in pairwise(cuts):
            inside = first <= low < end
            out.append(Stretch(low, high, change(stretch.state) if inside else stretch.state))
    return replace(one, stretches=out)


def window_of(
    one: Scene, rng: np.random.Generator, few: Sequence[float], fine: Sequence[float], tries: int = TRIES
) -> Window:
    """The window of the sums that the reductions of the probes would give; `few` and `fine` are edges of bins in
    microseconds, `few` among `fine`.
    """
    mesh = one.mesh
    pairs, servers = len(mesh.src), len(mesh.servers)
    sent, lost = np.zeros((2, pairs), dtype=np.int64)
    answers = np.zeros((pairs, len(few) + 1), dtype=np.int64)
    minutes = np.zeros((servers, one.minutes, len(few) + 1), dtype=np.int64)
    silent = np.zeros((pairs, one.minutes), dtype=np.int32)
    for stretch in one.stretches:
        length = stretch.end - stretch.first
        most = np.full(pairs, max(1, round(tries * length / MINUTES)))
        tried, missing, binned = _stretch(one, stretch.state, most, rng, np.asarray(few))
        sent, lost, answers = sent + tried, lost + missing, answers + binned
        by_server = np.add.reduceat(binned, np.searchsorted(mesh.src, np.arange(servers)), axis=0)
        minutes[:, stretch.first : stretch.end] += np.moveaxis(_spread(by_server, length, rng), 2, 1)
        struck = np.flatnonzero(missing)
        silent[struck, stretch.first : stretch.end] += _spread(missing[struck], length, rng)
    sums = {**_probe_sums(mesh, sent, lost, answers, minutes, silent), **_place_sums(one)}
    sums["servers"] = _fine_sums(mesh, minutes.sum(axis=1), few, fine, rng)
    return Window(EPOCH, EPOCH + timedelta(minutes=one.minutes), "synthetic", "probe_placed", sums)


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """By pair: probes `sent` and `lost`, and answers that came at once (`plain`, of which `late` are), after about 3 s
    (`once`) and after about 9 s (`twice`).
    """

    sent: Ints
    lost: Ints
    plain: Ints
    late: Ints
    once: Ints
    twice: Ints


def outcomes(one: Scene, state: State, most: Ints, rng: np.random.Generator) -> Outcomes:
    """Outcomes of up to `most` probes of each pair."""
    mesh = one.mesh
    sends = ~(state.dead | state.mute)[mesh.src]
    sent = rng.binomial(most, one.arriving) * sends if one.arriving < 1 else most * sends
    through = np.where(state.dead[mesh.dst], 0, sent)
    through = through - rng.binomial(through, state.blocked)
    first = rng.binomial(through, state.drop)
    second = rng.binomial(first, AGAIN)
    third = rng.binomial(second, AGAIN)
    plain = through - first
    late = rng.binomial(plain, np.minimum(1.0, state.slow + HEAVY))
    return Outcomes(sent, sent - through + third, plain, late, first - second, second - third)


def _stretch(
    one: Scene, state: State, most: Ints, rng: np.random.Generator, few: Floats
) -> tuple[Ints, Ints, Ints]:
    """Sent and lost by pair, and answers by pair and bin."""
    mesh = one.mesh
    what = outcomes(one, state, most, rng)
    binned = np.zeros((len(most), len(few) + 1), dtype=np.int64)
    _put(binned, what.late, _late_shares(few), rng)
    near = mesh.within_pod
    for kind, times in ((near, NEAR), (~near, FAR)):
        _put(binned, np.where(kind, what.plain - what.late, 0), _shares(few, times), rng)
    for count, at in ((what.once, RETRIED[0]), (what.twice, RETRIED[1])):
        binned[:, np.searchsorted(few, at, side="right")] += count
    _step(binned, mesh, state.stepped, few)
    return what.sent, what.lost, binned


def _put(binned: Ints, count: Ints, shares: Floats, rng: np.random.Generator) -> None:
    """Add `count` answers by pair to the bins; nearly all fall into the first bin with a share."""
    first = int(np.flatnonzero(shares)[0])
    others = rng.binomial(count, 1 - shares[first])
    binned[:, first] += count - others
    struck = np.flatnonzero(others)
    rest = shares.copy()
    rest[first] = 0.0
    if len(struck):
        binned[struck] += rng.multinomial(others[struck], rest / rest.sum())


def _shares(edges: Floats, times: tuple[float, float]) -> Floats:
    """Shares by bin of a log-normal time with that P50 and P99."""
    below = ndtr(np.log(edges / times[0]) / width_of(times))
    return np.diff(np.concatenate([[0.0], below, [1.0]]))


def width_of(times: tuple[float, float]) -> float:
    """The standard deviation of the logarithm of a log-normal time with that P50 and P99."""
    return float(np.log(times[1] / times[0]) / ndtri(0.99))


def _late_shares(edges: Floats) -> Floats:
    low, high = np.log(LATE)
    below = np.clip((np.log(edges) - low) / (high - low), 0.0, 1.0)
    return np.diff(np.concatenate([[0.0], below, [1.0]]))


def _step(binned: Ints, mesh: Mesh, stepped: Mask, few: Floats) -> None:
    """A clock that moves by 3 s while a probe is under way makes its answer 3 s late: one for each server."""
    at = int(np.searchsorted(few, RETRIED[0], side="right"))
    first = np.searchsorted(mesh.src, np.flatnonzero(stepped))
    moved = first[binned[first, 0] > 0]
    binned[moved, 0] -= 1
    binned[moved, at] += 1


def _spread(counts: Ints, minutes: int, rng: np.random.Generator) -> Ints:
    """Counts of any shape over so many minutes, as a last axis."""
    return rng.multinomial(counts, np.full(minutes, 1 / minutes))


def _probe_sums(
    mesh: Mesh, sent: Ints, lost: Ints, answers: Ints, minutes: Ints, silent: NDArray[np.int32]
) -> dict[str, Sums]:
    used = np.flatnonzero(sent)
    pair, at = np.nonzero(answers)
    quiet_pair, quiet_minute = np.nonzero(silent)
    server, minute, one = np.nonzero(minutes)
    return {
        "pairs": _sums(
            mesh, {"src": mesh.src[used], "dst": mesh.dst[used]}, {"sent": sent[used], "lost": lost[used]}
        ),
        "answers": _sums(
            mesh, {"src": mesh.src[pair], "dst": mesh.dst[pair], "bin": at}, {"answers": answers[pair, at]}
        ),
        "minutes": _sums(
            mesh, {"src": server, "slice": minute, "bin": one}, {"answers": minutes[server, minute, one]}
        ),
        "silent": _sums(
            mesh,
            {"src": mesh.src[quiet_pair], "dst": mesh.dst[quiet_pair], "slice": quiet_minute},
            {"lost": silent[quiet_pair, quiet_minute].astype(np.int64)},
        ),
    }


def _fine_sums(
    mesh: Mesh, counts: Ints, few: Sequence[float], fine: Sequence[float], rng: np.random.Generator
) -> Sums:
    """Answers by server and fine bin, from those by bin: as log-normal and late times spread within a bin."""
    edges = np.asarray(fine)
    shares = (1 - HEAVY) * _shares(edges, FAR) + HEAVY * _late_shares(edges) + 1e-12
    coarse = np.searchsorted(few, np.concatenate([[0.0], edges]), side="right")
    out = np.zeros((len(counts), len(edges) + 1), dtype=np.int64)
    for one in range(counts.shape[1]):
        inside = np.flatnonzero(coarse == one)
        out[:, inside] = rng.multinomial(counts[:, one], shares[inside] / shares[inside].sum())
    server, at = np.nonzero(out)
    return _sums(mesh, {"src": server, "bin": at}, {"answers": out[server, at]})


def _sums(mesh: Mesh, columns: Mapping[str, Ints], values: Mapping[str, Ints]) -> Sums:
    """Rows are in order of their keys already, because names ascend with their numbers."""
    rows = len(next(iter(columns.values())))
    keys: dict[str, Any] = {}
    for name, column in columns.items():
        if name in ("src", "dst"):
            keys[name] = tuple(map(mesh.servers.__getitem__, column.tolist()))
        else:
            keys[name] = column.astype(np.int64)
    return Sums({**keys, "layer": ("underlay",) * rows}, dict(values), rows)


def contained(one: Scene) -> dict[str, tuple[str, ...]]:
    """Containers of each component by the topology; a server that it does not name is left out."""
    mesh = one.mesh
    per = len(mesh.pods) // len(mesh.podsets)
    found: dict[str, tuple[str, ...]] = {DATACENTRE: (), SPINE: (DATACENTRE,)}
    found |= dict.fromkeys(mesh.podsets, (DATACENTRE,))
    found |= {name: (mesh.podsets[i // per],) for i, name in enumerate(mesh.pods)}
    pods = one.reported_pod.tolist()
    return found | {name: (mesh.pods[pod],) for name, pod in zip(mesh.servers, pods, strict=True) if pod >= 0}


def _place_sums(one: Scene) -> dict[str, Sums]:
    parents = contained(one)
    names = sorted(parents)
    needs = [(SPINE,) if name in one.mesh.podsets else () for name in names]
    ones = {"rows": np.ones(len(names), dtype=np.int64)}
    return {
        "places": Sums(
            {"component": tuple(names), "parents": paths_of([parents[name] for name in names])},
            ones,
            len(names),
        ),
        "needs": Sums({"component": tuple(names), "depends_on": paths_of(needs)}, ones, len(names)),
    }
