"""From a window of probes to a verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from analyzers.builtin.pingmesh import black_holes, evidence, patterns
from analyzers.builtin.pingmesh.assumptions import checked, lowered
from analyzers.builtin.pingmesh.bins import limit_bin, percentile
from analyzers.builtin.pingmesh.limits import measures
from analyzers.builtin.pingmesh.observed import Observed, observe
from analyzers.builtin.pingmesh.patterns import Found
from analyzers.builtin.pingmesh.reductions import FEW
from analyzers.builtin.pingmesh.sla import Scope, scopes
from analyzers.builtin.pingmesh.timing import minutes_of
from analyzers.builtin.pingmesh.verdict import named, suspect
from analyzers.contract import Params, Verdict, Window, inconclusive, quiet

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
    """Why "all is well" cannot be said although nobody is named."""
    if not seen.answers.sum():
        return (
            "no probe has an answer: the network, or whoever answers, is down, or the senders are cut off"
            if seen.lost.sum() >= seen.sent.sum()
            else "no probe carries a round-trip time: only black holes and silent servers could be looked for"
        )
    if found.pattern == "unclassified":
        return (
            "answers between some podsets are dropped or late beyond the limits, but in no pattern that says whose "
            "fault it is: see the heat map"
        )
    if found.crowd:
        return f"more than half of the {found.crowd} are above a limit: it is what they share, and nothing says what"
    where = seen.places
    of = {"data centre": where.dc_of(), "podset": where.podset_of(), "pod": where.pod}
    for one in table:
        if one.broken is None or one.level == "server":
            continue
        members = (of[one.level] == one.place).nonzero()[0]
        if minutes_of(seen, one.broken, members).lasted(persist):
            what = "have packets dropped" if one.broken == "dropped" else "are answered late"
            return f"probes from {one.name} {what} beyond the limit, but nothing says whose fault it is"
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
