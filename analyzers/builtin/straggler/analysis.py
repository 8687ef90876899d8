"""The verdict on one window of metrics, with its assumptions; a probability is lowered where one does not hold.

- `history`: windows before show how fast the job was, and what a node always differs by.
- `sampling`: nine in ten of the readings that a series usually has are there.
- `noise`: in most metrics the nodes of one job are alike.
- `pace`: iteration times are among the metrics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from analyzers.builtin.straggler import evidence as show
from analyzers.builtin.straggler.calibration import probability
from analyzers.builtin.straggler.findings import Named, Outcome, judge
from analyzers.builtin.straggler.pace import Slowdown, is_other_work, pace_of, slowdown, stopped_at
from analyzers.builtin.straggler.series import Observed, Pace, observe
from analyzers.builtin.text import count, moment, percent, so_many
from analyzers.contract import Assumption, Params, Suspect, Verdict, Window, inconclusive, quiet

SlowJob = tuple[Pace, Slowdown]

SURE = 0.9
MOST_SUSPECTS = 20
_PRESENT = 0.9
_LOWERED = {"history": 0.5, "sampling": 0.5, "noise": 1.0, "pace": 2.5}
"""Nats that the odds of a probability lose where an assumption does not hold."""


def analyze(window: Window, params: Params) -> Verdict:
    seen = observe(window, params)
    if not seen.grids and not seen.paces:
        return inconclusive(_nothing(seen, params), _measures(seen, None, 0, 0))
    outcome = judge(seen, params)
    assumptions = _checked(seen, outcome)
    slower, stopped, others = _jobs(seen, params)
    figures = _measures(seen, outcome, len(slower) + len(others), len(stopped))
    shown = show.pieces(seen, outcome, [*slower, *others])
    if outcome.named:
        lost = assumptions_lower(assumptions)
        suspects = tuple(_suspect(seen, one, lost) for one in outcome.named[:MOST_SUSPECTS])
        return Verdict("named", suspects, None, figures, shown, assumptions)
    if stopped:
        reason = f"Iterations of {stopped[0].shown} ended and no node is unlike the others: the job may have finished."
        if _still_working(seen, stopped[0]):
            return Verdict("inconclusive", (), reason, figures, shown, assumptions)
    if slower:
        pace, one = slower[0]
        since = moment(seen.starts[one.first])
        longer = f"Iterations of {pace.shown} take {one.ratio:.2f} times as long since {since}"
        reason = f"{longer}, and {_no_culprit(seen)}."
        return Verdict("inconclusive", (), reason, figures, shown, assumptions)
    return quiet(figures, shown, assumptions)


def _nothing(seen: Observed, params: Params) -> str:
    if not seen.series:
        return "There are no metrics in this window."
    return (
        f"None of {so_many(seen.series, 'series')} is an iteration time, and no metric covers "
        f"{params['min_nodes']} nodes or more: labels that name a node are listed in the documentation, and the "
        "parameter `node_label` names another."
    )


def _no_culprit(seen: Observed) -> str:
    if not seen.grids:
        return "no metric of its nodes says which of them is slow"
    return "no node is unlike its peers: what they share is slow, or their work has grown"


def _jobs(seen: Observed, params: Params) -> tuple[list[SlowJob], list[Pace], list[SlowJob]]:
    """Jobs that became slower, jobs that stopped, and jobs whose work became more, each with its slowdown."""
    slower, others = list[SlowJob](), list[SlowJob]()
    stopped = list[Pace]()
    for pace in seen.paces:
        if stopped_at(seen, pace, float(params["stopped_seconds"])) is not None:
            stopped.append(pace)
        found = slowdown(seen, pace, float(params["least_change"]))
        if found is not None:
            (others if is_other_work(seen, pace, found) else slower).append((pace, found))
    return slower, stopped, others


def _still_working(seen: Observed, pace: Pace) -> bool:
    """Whether nodes are busy although iterations ended: a job that has finished leaves them idle."""
    for grid in seen.grids:
        if grid.of_the_load and pace_of(seen, grid, grid.nodes[0]) is pace:
            ends = grid.values[:, -seen.columns(60.0) :]
            before = grid.values[:, : max(1, grid.values.shape[1] // 2)]
            if np.isfinite(ends).any() and np.isfinite(before).any():
                return bool(np.nanmedian(ends) > 0.5 * np.nanmedian(before))
    return False


def _measures(seen: Observed, outcome: Outcome | None, slower: int, stopped: int) -> dict[str, Any]:
    return {
        "nodes": len(seen.nodes),
        "series": seen.series,
        "metrics": len(seen.grids),
        "jobs": len(seen.paces),
        "slower_jobs": slower,
        "stopped_jobs": stopped,
        "apart": len(outcome.named) + len({one.one.node for one in outcome.cleared}) if outcome else 0,
        "split": len(outcome.split) if outcome else 0,
        "named": len(outcome.named) if outcome else 0,
    }


def _checked(seen: Observed, outcome: Outcome) -> tuple[Assumption, ...]:
    minutes = seen.now * seen.width.total_seconds() / 60
    history = Assumption(
        "history", seen.now > 0, f"{count(round(minutes))} minutes before this window are known."
    )
    cells = sum(grid.values[:, seen.now :].size / grid.gap for grid in seen.grids)
    there = sum(int(np.isfinite(grid.values[:, seen.now :]).sum()) for grid in seen.grids)
    share = min(1.0, there / cells) if cells else 1.0
    sampling = Assumption(
        "sampling", share >= _PRESENT, f"{percent(share)} of the readings that series usually have are there."
    )
    judged = len(seen.grids) - len(outcome.split)
    noise = Assumption(
        "noise",
        2 * judged >= len(seen.grids),
        f"In {count(judged)} of {so_many(len(seen.grids), 'metric')} most nodes are alike.",
    )
    pace = Assumption(
        "pace", bool(seen.paces), f"Iteration times of {so_many(len(seen.paces), 'job')} are there."
    )
    return history, noise, pace, sampling


def assumptions_lower(assumptions: Sequence[Assumption]) -> float:
    """Nats that the odds of a probability lose."""
    return sum(_LOWERED[one.name] for one in assumptions if not one.holds)


def score_of(evidence: float, lost: float) -> float:
    stated = probability(evidence)
    return 1 / (1 + math.exp(lost - math.log(stated / (1 - stated)))) if lost else stated


def _suspect(seen: Observed, one: Named, lost: float) -> Suspect:
    score = score_of(one.evidence, lost)
    phrase = sentence(one)
    since = seen.starts[one.first]
    last = min(seen.starts[one.last - 1] + seen.width, seen.starts[-1] + seen.width)
    return Suspect(
        component=one.node,
        score=score,
        summary=f"{one.node} {phrase} since {moment(since)}.",
        sure=score >= SURE,
        first_failure=since,
        last_failure=last,
        phrase=phrase[:200],
        indicator=_indicator(one)[:100],
    )


def _indicator(one: Named) -> str:
    return one.metrics[0].grid.name if one.metrics else "rows of the node"


def sentence(one: Named) -> str:
    """Fault of the node, as the end of a sentence."""
    job = one.pace.shown if one.pace else "its job"
    if not one.metrics:
        return f"sends nothing any more, and iterations of {job} ended"
    worst = one.metrics[0]
    side = "above" if worst.off > 0 else "below"
    where = worst.grid.name + (f" ({worst.member})" if worst.member else "")
    apart = f"{where} is {percent(abs(worst.off))} {side} its peers"
    if worst.off >= 1:
        apart = f"{where} is {1 + worst.off:.2g} times that of its peers"
    if one.kind == "stopped":
        return f"does nothing ({apart}), and iterations of {job} ended"
    if one.change.state == "stopped":
        return f"is unlike its peers ({apart}), and iterations of {job} ended"
    if worst.in_bursts:
        bursts, ratio = so_many(worst.bouts, "burst"), f"{one.change.ratio:.2f} times as long"
        return f"slows {job} in {bursts}: {apart} in them, and iterations take {ratio}"
    if one.change.state == "slower":
        return f"slows {job}: {apart}, and iterations take {one.change.ratio:.2f} times as long"
    return f"is slow or at fault: {apart}"
