"""Pingmesh on one window of probes, with its assumptions; a probability is lowered where one does not hold.

- `sampling`: all servers probe. Where many agents send nothing, a server is seen by few others, and from one side.
- `noise`: without the blamed components drops and latency are within the limits. Congestion and storms are not.
- `topology`: the place of each server is known, and what is down together is in one place.

History is not needed: limits are parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.pingmesh import black_holes, evidence, patterns
from analyzers.builtin.pingmesh.analyzer import FEW
from analyzers.builtin.pingmesh.evidence import Scope, scopes
from analyzers.builtin.pingmesh.observed import SLOW_SHARE, Observed, limit_bin, measures, observe, percentile
from analyzers.builtin.pingmesh.patterns import Found
from analyzers.builtin.pingmesh.verdict import Named, minutes_of, named, suspect
from analyzers.builtin.text import count, percent
from analyzers.contract import Assumption, Params, Verdict, Window, inconclusive, quiet

MOST_SUSPECTS = 50


def analyze(window: Window, params: Params) -> Verdict:
    drop_limit, alpha = float(params["drop_alert"]), float(params["alpha"])
    p99_us = FEW[limit_bin(float(params["p99_alert_us"])) - 1]
    seen = observe(window, str(params["layer"]), p99_us)
    figures = _measures(seen)
    if not seen.pairs:
        return inconclusive("there are no probes in this window", figures)
    found = patterns.find(seen, drop_limit, alpha)
    symptoms = black_holes.symptoms(seen, found.open, int(params["min_tries"]))
    holes = black_holes.find(seen, symptoms, float(params["black_hole_score"]), alpha)
    table = scopes(seen, measures(drop_limit), alpha)
    persist = min(int(params["persist_minutes"]), seen.minutes)
    all_of_them = named(seen, found, holes)
    culprits = [one for one in all_of_them if one.minutes.lasted(persist)]
    passing = [one for one in all_of_them if not one.minutes.lasted(persist)]
    assumptions = checked(seen, culprits, drop_limit)
    culprits = [replace(one, score=lowered(one.score, assumptions)) for one in culprits]
    figures |= {
        "pattern": found.pattern,
        "alerts": sum(one.broken is not None for one in table),
        "black_hole_tors": sum(one.blamed.kind == "black_hole" for one in culprits),
        "passing": len(passing),
    }
    shown = evidence.pieces(
        window,
        seen,
        culprits,
        passing,
        table,
        symptoms,
        (drop_limit, p99_us),
        int(params["reloads_per_day"]),
        persist,
    )
    if culprits:
        suspects = tuple(suspect(window, seen, one, drop_limit, p99_us) for one in culprits[:MOST_SUSPECTS])
        return Verdict("named", suspects, None, figures, shown, assumptions)
    doubt = _doubt(seen, found, table, persist)
    if doubt:
        return Verdict("inconclusive", (), doubt, figures, shown, assumptions)
    return quiet(figures, shown, assumptions)


def _doubt(seen: Observed, found: Found, table: list[Scope], persist: int) -> str | None:
    """Reason why "all is well" cannot be said although nobody is named."""
    if not seen.answers.sum():
        return (
            "no probe has an answer: the network or the answering servers are down, or the senders are cut off"
            if seen.lost.sum() >= seen.sent.sum()
            else "no probe carries a round-trip time: only black holes and silent servers could be looked for"
        )
    if found.pattern == "unclassified":
        return (
            "answers between some podsets are dropped or late beyond the limits, without a pattern that points "
            "to a component: see the heat map"
        )
    if found.crowd:
        return f"more than half of the {found.crowd} are above a limit: a shared cause, which the probes do not show"
    where = seen.places
    of = {"data centre": where.dc_of(), "podset": where.podset_of(), "pod": where.pod}
    for one in table:
        if one.broken is None or one.level == "server":
            continue
        members = (of[one.level] == one.place).nonzero()[0]
        if minutes_of(seen, one.broken, members).lasted(persist):
            what = "have packets dropped" if one.broken == "dropped" else "are answered late"
            return f"probes from {one.name} {what} beyond the limit, without a pattern that points to a component"
    return None


def _measures(seen: Observed) -> dict[str, Any]:
    fine = seen.fine.sum(axis=0)
    answers = float(seen.answers.sum())
    p50, p99 = percentile(fine, 0.5), percentile(fine, 0.99)
    return {
        "servers": len(seen.servers),
        "unplaced": int((seen.places.pod < 0).sum()),
        "pods": len(seen.places.pods),
        "pairs": seen.pairs,
        "probes": int(seen.sent.sum()),
        "lost": int(seen.lost.sum()),
        "drop_rate": float(seen.dropped.sum()) / answers if answers else None,
        "p50_us": None if p50 is None else round(p50, 1),
        "p99_us": None if p99 is None else round(p99, 1),
        "silent_servers": int(seen.silent().sum()) if seen.pairs else 0,
    }


Mask = NDArray[np.bool_]

SENDING = 0.8
"""Least share of the servers that answer probes which send some themselves."""
PLACED = 0.9
"""Least share of the servers whose pod is known."""
MOST_MISMATCHED = 0.2
"""Most servers that are silent outside of what is down, or answer inside, as a share of the servers inside."""

_LOWERED = {"noise": 1.0, "sampling": 0.5, "topology": 0.7}
"""Nats that the odds of a probability lose where an assumption does not hold."""


def checked(seen: Observed, found: Sequence[Named], drop_limit: float) -> tuple[Assumption, ...]:
    """The assumptions of a window with probes, in a fixed order."""
    return _noise(seen, found, drop_limit), _sampling(seen), _topology(seen, found)


def lowered(score: float, assumptions: Sequence[Assumption]) -> float:
    """A probability after what it loses to assumptions that do not hold."""
    lost = sum(_LOWERED[one.name] for one in assumptions if not one.holds)
    return 1 / (1 + math.exp(lost - math.log(score / (1 - score)))) if lost else score


def _noise(seen: Observed, found: Sequence[Named], drop_limit: float) -> Assumption:
    rest = _outside(seen, found)
    answers = float(seen.answers[rest].sum())
    if not answers:
        return Assumption("noise", True, "No answers are left without the blamed components.")
    dropped = float(seen.dropped[rest].sum()) / answers
    slow = float((seen.slow - seen.dropped)[rest].sum()) / answers
    detail = (
        f"Without the blamed components {percent(dropped)} of the probes have a packet dropped (limit "
        f"{percent(drop_limit)}), and {percent(slow)} are answered late (limit {percent(SLOW_SHARE)})."
    )
    return Assumption("noise", dropped <= drop_limit and slow <= SLOW_SHARE, detail)


def _outside(seen: Observed, found: Sequence[Named]) -> Mask:
    """Pairs that none of the blamed components carries; of the Spine those within podsets."""
    inside = np.zeros(len(seen.servers), dtype=bool)
    outside = np.ones(seen.pairs, dtype=bool)
    podset = seen.places.podset_of()
    for one in found:
        if one.blamed.kind in ("spine", "black_hole_spine"):
            outside &= podset[seen.src] == podset[seen.dst]
        else:
            inside[one.blamed.members] = True
    return outside & ~(inside[seen.src] | inside[seen.dst])


def _sampling(seen: Observed) -> Assumption:
    size = len(seen.servers)
    sending = np.bincount(seen.src, seen.sent, minlength=size) > 0
    answering = np.bincount(seen.dst, seen.sent - seen.lost, minlength=size) > 0
    alive = sending | answering
    among, send = int(alive.sum()), int((sending & alive).sum())
    detail = f"{count(send)} of {count(among)} servers that are alive send probes."
    return Assumption("sampling", send >= SENDING * among, detail)


def _topology(seen: Observed, found: Sequence[Named]) -> Assumption:
    size, placed = len(seen.servers), int((seen.places.pod >= 0).sum())
    if placed < PLACED * size:
        detail = f"The pod of {count(placed)} of {count(size)} servers is known: faults of the others are theirs alone."
        return Assumption("topology", False, detail)
    silent, inside = seen.silent(), np.zeros(size, dtype=bool)
    for one in found:
        if one.blamed.measure == "silent":
            inside[one.blamed.members] = True
    mismatched = int((inside & ~silent).sum() + (silent & ~inside).sum()) if inside.any() else 0
    if mismatched > MOST_MISMATCHED * inside.sum():
        detail = (
            f"{count(mismatched)} servers are silent outside of what is down, or answer inside, beside "
            f"{count(int(inside.sum()))} inside: their places may be recorded wrongly."
        )
        return Assumption("topology", False, detail)
    return Assumption("topology", True, f"The pod of {count(placed)} of {count(size)} servers is known.")
