"""Whether the window is such as the method takes windows to be, and what follows where it is not.

Each assumption that fails takes `DOUBT` nats off the evidence before it becomes a probability. Where nobody is blamed
and the history says too little, or somebody nearly is, the verdict is `inconclusive` and says what would be needed.
"""

from __future__ import annotations

import numpy as np

from analyzers.builtin.text import percent
from analyzers.builtin.trace_blame.likelihood import ObservedWindow
from analyzers.builtin.trace_blame.selection import Decision
from analyzers.contract import Assumption, Window

DOUBT = 2.0
"""Nats that an assumption is worth that fails."""

KNOWN = 0.8
"""Least share of the window's spans whose operations the history holds often enough."""

OFTEN = 10
"""Spans of an operation in the history from which on it is known."""

WINDOWS = 3
"""Windows of the history from which on it shows how normal varies."""

VARIED = 0.02
"""Largest share of places and windows of the history that surprise the other windows."""

RATE = 4.0
"""Largest factor between the traces a second now and before."""

TORN = 0.05
"""Largest share of parents that are missing."""

OUTLASTED = 0.1
"""Largest share of spans that outlast a parent of the same instance, by whose clock no call ends before its parts."""

NEAR = 2.0
"""Nats below the margin from which on somebody is nearly blamed."""


def checked(window: Window, seen: ObservedWindow, decision: Decision) -> tuple[Assumption, ...]:
    return (_history(seen), _sampling(window, seen), _noise(seen, decision), _topology(seen))


def doubt(assumptions: tuple[Assumption, ...]) -> float:
    """Nats that the failed ones take off the evidence."""
    return DOUBT * sum(not one.holds for one in assumptions)


def _history(seen: ObservedWindow) -> Assumption:
    spans, now = seen.spans, seen.spans.era == seen.spans.eras - 1
    before = np.bincount(spans.operation[~now], minlength=len(spans.operations))
    known = float((before[spans.operation[now]] >= OFTEN).mean()) if now.any() else 0.0
    detail = (
        f"{percent(known)} of the spans are of operations that the windows before hold {OFTEN} times or more."
    )
    return Assumption("history", known >= KNOWN, detail)


def _sampling(window: Window, seen: ObservedWindow) -> Assumption:
    spans, torn = seen.spans, seen.shapes.torn
    seconds = [max(1.0, one.length.total_seconds()) for one in (*window.history, window)]
    rates = [len(np.unique(spans.trace[spans.era == era])) / seconds[era] for era in range(spans.eras)]
    before = [rate for rate in rates[:-1] if rate > 0]
    ratio = rates[-1] / float(np.median(before)) if before else 0.0
    detail = (
        f"There are {ratio:.2g} times the traces a second of the windows before; "
        f"{percent(torn)} of the parents named are missing."
    )
    return Assumption("sampling", 1 / RATE <= ratio <= RATE and torn <= TORN, detail)


def _noise(seen: ObservedWindow, decision: Decision) -> Assumption:
    windows = len(np.unique(seen.spans.era)) - 1
    share = max(seen.own_normal.surprising, seen.way_normal.surprising, seen.habits.surprising)
    shift = max(decision.weighed.own_common, decision.weighed.way_common)
    if windows < WINDOWS:
        few = "window" if windows == 1 else "windows"
        detail = f"{windows} {few} of history do not show how normal varies; {WINDOWS} do."
        return Assumption("noise", False, detail)
    detail = (
        f"{percent(share)} of what the windows before show surprises the other ones; everything takes "
        f"{np.exp(shift):.2g} times as long as before."
    )
    return Assumption("noise", share <= VARIED and shift < 0.7, detail)


def _topology(seen: ObservedWindow) -> Assumption:
    spans = seen.spans
    child = np.flatnonzero((spans.parent >= 0) & (spans.era == spans.eras - 1))
    parent = spans.parent[child]
    outlasts = (spans.end[child] > spans.end[parent] + seen.resolution_us) & (
        spans.start[child] < spans.end[parent]
    )
    same = outlasts[spans.instance[child] == spans.instance[parent]]
    share = float(same.mean()) if len(same) else 0.0
    detail = f"{percent(share)} of the spans outlast a parent of the same instance."
    return Assumption("topology", not share > OUTLASTED, detail)


def needed(
    seen: ObservedWindow, decision: Decision, assumptions: tuple[Assumption, ...], margin: float
) -> str | None:
    """Why a window in which nobody is blamed decides nothing, and what would be needed; None where it does."""
    history = assumptions[0]
    if not history.holds:
        return f"Normal is not known: {history.detail} Needed: more windows, or longer ones."
    lead = float(decision.odds.max(initial=-np.inf))
    if lead < margin - NEAR:
        return None
    name = seen.spans.services[int(np.argmax(decision.odds))]
    logs = "more traces" if seen.logs else "counts of its log records (kind log_count), or more traces"
    return (
        f"service/{name} explains best what changed, with {lead:.1f} nats of evidence where {margin:g} are needed. "
        f"Needed: {logs}."
    )
