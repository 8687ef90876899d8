"""Nodes at fault: those apart from their peers while their job is slower or has stopped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analyzers.builtin.straggler.apart import Apart, Deviations, deviations, in_bursts, stretch
from analyzers.builtin.straggler.pace import Change, between_bursts, during, pace_of, stopped_at
from analyzers.builtin.straggler.series import Grid, Observed, Pace
from analyzers.contract import Params

Kind = Literal["gray", "stopped"]

MOST_APART = 0.2
"""Largest share of nodes that is apart in a metric: a larger one tells two kinds of node from each other, not a
fault."""
BOUTS = 3
"""Number of bouts from which a fault that came and went does not last."""
FOLLOWS = 0.5
"""A node that is apart by less than this share of the farthest at the same time follows that one."""
ALONE = 2
"""Nodes that may be apart in a metric in any fleet, however small."""
LEAST_NATS = 1.0
LEFT = "it does nothing, and the others go on or several stopped together: it has left the job"
NAMED = 6.0
_OTHER_CHANGE = 2.0
"""Without a metric of its pace, a node differs by this many times `least_change` to be named."""
_GONE = 0.05
"""Share of what its peers do below which a node does nothing."""
_JOINED = {"slower": 5.0, "stopped": 5.0, "unknown": 0.0, "as before": 0.0, "paused": 0.0}
"""Nats that the job's iteration times add to the evidence of a node that is apart meanwhile."""
_VANISHED = 8.0
"""Evidence of a node whose rows end as the job stops while its peers' go on."""
_GAP_SECONDS = 120.0


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A node at fault since column `first`, up to `last`. `worst` is the metric it is farthest apart in, and the first
    of `metrics`; none where its rows ended.
    """

    node: str
    kind: Kind
    evidence: float
    first: int
    last: int
    change: Change
    pace: Pace | None
    metrics: tuple[Apart, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Cleared:
    """A node that is apart and is not blamed, with the reason."""

    one: Apart
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """`split` are metrics in which too many nodes are apart; `looked_at` the others."""

    named: tuple[Named, ...]
    cleared: tuple[Cleared, ...]
    split: tuple[Grid, ...]
    looked_at: tuple[Deviations, ...]


def judge(seen: Observed, params: Params, named: float = NAMED) -> Outcome:
    """The nodes at fault, the surest first; `named` is the least evidence in nats."""
    least, stopped = float(params["least_change"]), float(params["stopped_seconds"])
    looked = [deviations(seen, grid, float(params["persist_seconds"])) for grid in seen.grids]
    split, apart = [], list[Apart]()
    for one in looked:
        found = _candidates(one, least, len(looked))
        if len({each.node for each in found}) > max(ALONE, MOST_APART * len(one.grid.nodes)):
            split.append(one.grid)
        else:
            apart += found
    apart, cleared = _without_followers(apart)
    jobs = [_job_of(seen, each, least, stopped) for each in apart]
    left = {each.node for each, (_, change) in zip(apart, jobs, strict=True) if _has_left(each, change)}
    idle = {each.node for each, (pace, _) in zip(apart, jobs, strict=True) if pace is None and _is_idle(each)}
    left |= idle if len(idle) > ALONE else set()
    by_node: dict[str, list[tuple[float, Apart, Change, Pace | None]]] = defaultdict(list)
    for each, (pace, change) in zip(apart, jobs, strict=True):
        why = LEFT if each.node in left else _spared(each, change, pace, least)
        if why is not None:
            cleared.append(Cleared(each, why))
            continue
        by_node[each.node].append((each.nats + _JOINED[change.state], each, change, pace))
    for each, change, pace in _in_bursts(seen, looked, params):
        if each.node not in by_node and each.node not in left:
            cleared = [one for one in cleared if (one.one.node, one.one.grid) != (each.node, each.grid)]
            by_node[each.node].append((each.nats + _JOINED[change.state], each, change, pace))
    blamed = [_named(node, found) for node, found in sorted(by_node.items())]
    cleared += [Cleared(one.metrics[0], "so much occurs by chance") for one in blamed if one.evidence < named]
    sure = [one for one in blamed if one.evidence >= named]
    sure += _vanished(seen, {one.node for one in sure}, stopped)
    sure.sort(key=lambda one: -one.evidence)
    return Outcome(tuple(sure), tuple(cleared), tuple(split), tuple(looked))


def _in_bursts(
    seen: Observed, looked: Sequence[Deviations], params: Params
) -> list[tuple[Apart, Change, Pace | None]]:
    """Series that are apart in bursts, in each of which the job slows down, with the job.

    Metrics of the load and of the host are left out: checkpoints, evaluations and shared GPUs move them in bursts, too.
    """
    least, found = float(params["least_change"]), list[tuple[Apart, Change, Pace | None]]()
    for one in looked if seen.paces else ():
        if one.grid.of_the_load or one.grid.of_the_host:
            continue
        bursts = in_bursts(seen, one, float(params["persist_seconds"]))
        if bursts is None:
            continue
        apart = _candidates(bursts, least, 2 * len(looked))
        if len(apart) > max(ALONE, MOST_APART * len(one.grid.nodes)):
            continue
        for each in apart:
            pace = pace_of(seen, each.grid, each.node)
            if pace is None or each.bouts < 2:
                continue
            on = np.sign(each.off) * bursts.smooth[each.series] >= FOLLOWS * abs(each.off)
            change = between_bursts(seen, pace, on, least)
            if change.state == "slower":
                found.append((each, change, pace))
    return found


def _job_of(seen: Observed, one: Apart, least: float, stopped: float) -> tuple[Pace | None, Change]:
    """The job of a node that is apart, and how its iterations fared meanwhile."""
    pace = pace_of(seen, one.grid, one.node)
    if pace is None:
        return None, Change("unknown")
    return pace, during(seen, pace, one.first, one.last, least, stopped)


def _has_left(one: Apart, change: Change) -> bool:
    """Whether a node does nothing while the iterations of its job go on: it is none of the job's any more."""
    return _is_idle(one) and change.state in ("slower", "as before")


def _is_idle(one: Apart) -> bool:
    return one.grid.of_the_load and one.off <= _GONE - 1


def _candidates(one: Deviations, least: float, metrics: int) -> list[Apart]:
    """The farthest series of each node that differs by more than chance, and enough."""
    wanted = least if one.grid.of_the_pace else _OTHER_CHANGE * least
    best: dict[str, Apart] = {}
    for series in np.flatnonzero(np.abs(one.sustained) >= wanted).tolist():
        if one.nats(float(one.sustained[series])) - np.log(max(1, metrics)) < LEAST_NATS:
            continue
        found = stretch(one, series, metrics)
        if found.node not in best or abs(found.off) > abs(best[found.node].off):
            best[found.node] = found
    return list(best.values())


def _without_followers(apart: Sequence[Apart]) -> tuple[list[Apart], list[Cleared]]:
    """Without nodes that are apart by less than half of what another is in the same metric at the same time."""
    retained, cleared = [], []
    for one in apart:
        ahead = [
            other
            for other in apart
            if other.grid is one.grid
            and not one.grid.of_the_pace
            and other.first < one.last
            and one.first < other.last
            and abs(one.off) < FOLLOWS * abs(other.off)
        ]
        if ahead:
            cleared.append(Cleared(one, f"{ahead[0].node} is farther apart at the same time"))
        else:
            retained.append(one)
    return retained, cleared


def _spared(one: Apart, change: Change, pace: Pace | None, least: float) -> str | None:
    """Reason why a node that is apart is not at fault, or None."""
    if one.bouts >= BOUTS:
        return f"it came and went {one.bouts} times, as checkpoints, evaluations and shared GPUs do"
    if one.grid.of_iterations:
        return None  # the job's pace is that of most nodes, and this one says of itself that it is slower
    if change.state == "as before" and not (one.grid.of_the_pace and abs(one.off) >= _OTHER_CHANGE * least):
        return f"iterations took {change.ratio:.2f} times as long as before: the job did not wait for it"
    if change.state == "paused":
        return "iterations paused meanwhile and went on, as for a checkpoint"
    if change.state == "unknown":
        if pace is None and one.grid.of_the_host:
            return "what a host does says nothing of its job, and no iteration times are there"
        if one.from_start and not one.grid.of_the_pace:
            return "it was so from the first row on, and the metric does not say how fast a node works"
        if pace is not None and abs(one.off) < 2 * least:
            return "nothing is known of the iterations before"
    return None


def _named(node: str, found: Sequence[tuple[float, Apart, Change, Pace | None]]) -> Named:
    ranked = sorted(found, key=lambda each: (-each[0], -abs(each[1].off), each[1].grid.name))
    evidence, worst, change, pace = ranked[0]
    metrics = tuple(each[1] for each in ranked)
    kind: Kind = "stopped" if change.state == "stopped" and _does_nothing(metrics) else "gray"
    first = min(one.first for one in metrics if one.last > worst.first and one.first < worst.last)
    return Named(node, kind, evidence, first, max(one.last for one in metrics), change, pace, metrics)


def _does_nothing(metrics: Sequence[Apart]) -> bool:
    return any(_is_idle(one) for one in metrics)


def _vanished(seen: Observed, known: set[str], stopped_seconds: float) -> list[Named]:
    """Nodes whose rows end as their job stops, where those of nine in ten of its nodes go on."""
    found = []
    last = _last_rows(seen)
    for pace in seen.paces:
        ended = stopped_at(seen, pace, stopped_seconds)
        if ended is None:
            continue
        mine = {node for node in last if _works_for(seen, node, pace)}
        gap = seen.columns(_GAP_SECONDS)
        end = len(seen.starts)
        gone = sorted(node for node in mine if abs(last[node] - ended) <= gap and end - last[node] > 2 * gap)
        if gone and len(gone) <= max(1, 0.1 * len(mine)):
            found += [
                Named(node, "stopped", _VANISHED, last[node], end, Change("stopped"), pace, ())
                for node in gone
                if node not in known
            ]
    return found


def _last_rows(seen: Observed) -> dict[str, int]:
    """The column after the last that a node has a row in."""
    found: dict[str, int] = {}
    for grid in seen.grids:
        there = np.isfinite(grid.values)
        ends = np.where(there.any(axis=1), there.shape[1] - there[:, ::-1].argmax(axis=1), 0)
        for owner, end in zip(grid.owner.tolist(), ends.tolist(), strict=True):
            node = grid.nodes[owner]
            found[node] = max(found.get(node, 0), end)
    return found


def _works_for(seen: Observed, node: str, pace: Pace) -> bool:
    return any(node in grid.nodes and pace_of(seen, grid, node) is pace for grid in seen.grids)
