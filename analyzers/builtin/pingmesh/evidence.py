"""What a verdict of pingmesh shows: the blamed and the cleared, the heat map, the SLA, black holes, what to do."""

from __future__ import annotations

import numpy as np

from analyzers.builtin.pingmesh.black_holes import Symptoms
from analyzers.builtin.pingmesh.heat_map import heat_map
from analyzers.builtin.pingmesh.observed import Observed
from analyzers.builtin.pingmesh.sla import LEVELS, Scope
from analyzers.builtin.pingmesh.verdict import WHAT, Named, span
from analyzers.builtin.text import hundredths, listed, so_many
from analyzers.contract import Evidence, Window, table, text

MOST_LINES = 20
_SHARES = (
    "Affected are probes that lost a packet or took too long, servers that are silent, or pairs of servers that lose "
    "everything, over the whole window; p is how probable as much is by chance."
)
MOST_SCOPES = {"data centre": 10, "podset": 10, "pod": 10, "server": 5}


def blamed(window: Window, culprits: list[Named], title: str, note: str) -> Evidence:
    rows = []
    for one in culprits:
        first, last = span(window, one)
        rows.append(
            (
                one.component,
                WHAT[one.blamed.kind],
                one.blamed.measure.replace("_", " "),
                int(one.blamed.hits),
                int(one.blamed.tries),
                hundredths(one.blamed.hits / one.blamed.tries),
                float(f"{one.blamed.p:.3g}"),
                f"{first:%H:%M} to {last:%H:%M}",
                round(one.minutes.spread, 1),
                ", ".join(one.alike) or "–",
            )
        )
    columns = (
        "component",
        "what",
        "measure",
        "affected",
        "of all",
        "affected (%)",
        "p",
        "seen",
        "minutes",
        "cannot be told from",
    )
    return table(title, columns, tuple(rows), note)


def sla(found: list[Scope]) -> Evidence:
    """Every alert, then the scopes of each level that are nearest to a limit."""
    shown: list[Scope] = []
    for level in LEVELS:
        mine = [one for one in found if one.level == level]
        broken = [one for one in mine if one.broken]
        shown += [*broken, *(one for one in mine if not one.broken)][
            : max(MOST_SCOPES[level], min(len(broken), 20))
        ]
    rows = tuple(
        (
            one.level,
            one.name,
            int(one.answers),
            hundredths(one.drop_rate),
            None if one.p50 is None else round(one.p50 / 1000, 3),
            None if one.p99 is None else round(one.p99 / 1000, 3),
            {"dropped": "drops", "slow": "P99", None: "–"}[one.broken],
        )
        for one in shown
    )
    columns = ("level", "from", "answers", "dropped (%)", "P50 (ms)", "P99 (ms)", "alert")
    note = (
        "Of answered probes only: a probe without an answer may as well be a dead server. Times are known to 5 %. "
        "An alert is above its limit by more than chance."
    )
    return table("Service level", columns, rows, note)


def cleared(seen: Observed, found: list[Scope], culprits: list[Named]) -> Evidence | None:
    """Pods and servers nearest to a limit that are not blamed, with their numbers."""
    blamed_servers = np.zeros(len(seen.servers), dtype=bool)
    for one in culprits:
        blamed_servers[one.blamed.members] = True
    rows: list[tuple[str, str, int, int, float, str]] = []
    for scope in found:
        if (
            scope.level not in ("pod", "server")
            or len(rows) >= MOST_LINES
            or not (scope.dropped or scope.broken)
        ):
            continue
        members = (
            seen.places.pod == scope.place
            if scope.level == "pod"
            else np.arange(len(seen.servers)) == scope.place
        )
        if blamed_servers[members].any():
            continue
        why = "above a limit, but not to and from nearly all peers" if scope.broken else "no more than chance"
        rows.append(
            (scope.name, scope.level, int(scope.answers), int(scope.dropped), float(f"{scope.p:.3g}"), why)
        )
    if not rows:
        return None
    columns = ("component", "level", "answers", "with a dropped packet", "p", "why it is cleared")
    return table("Looked into and cleared", columns, tuple(rows[:8]))


def black_holes(seen: Observed, found: Symptoms) -> Evidence | None:
    """ToRs by their score."""
    ranked = [one for one in np.lexsort((-found.struck, -found.score)).tolist() if found.struck[one]]
    if not ranked:
        return None
    rows = tuple(
        (
            seen.places.pods[one],
            int(found.struck[one]),
            int(found.servers[one]),
            round(float(found.score[one]), 4),
        )
        for one in ranked[:MOST_LINES]
    )
    note = (
        "A server has the symptom if pairs with it lose more than its other pairs and than the other end's. The far "
        "ends of a bad ToR's pairs have it, too: what one ToR explains is not held against the next."
    )
    columns = ("ToR", "servers with the symptom", "servers", "score")
    return table("Black holes: servers that cannot reach some of their peers", columns, rows, note)


def advice(culprits: list[Named], budget: int) -> Evidence | None:
    """What to do about black holes; nothing is done by itself."""
    tors = [one.component for one in culprits if one.blamed.kind == "black_hole"]
    above = [one.component for one in culprits if one.blamed.kind in ("black_hole_leaf", "black_hole_spine")]
    parts = []
    if tors:
        now, later = tors[:budget], tors[budget:]
        parts.append(
            f"Reload {listed(tuple(now), 20)}: a reload clears a black hole of a ToR. No more than {budget} reloads a "
            "day, counting those of other windows."
        )
        if later:
            parts.append(f"Let wait until tomorrow: {listed(tuple(later), 20)}.")
    if above:
        parts.append(
            f"Do not reload ToRs for {listed(tuple(above), 20)}: nearly all of them show the symptom, so the switches "
            "above are to be looked into by the network team."
        )
    return text("What to do", " ".join(parts)) if parts else None


def method(window: Window, seen: Observed, drop_limit: float, p99_us: float, persist: int) -> Evidence:
    placed = int((seen.places.pod >= 0).sum())
    later = window.sums["places"].later if "places" in window.sums else 0
    told = f" (known only since after the window's start: {so_many(later, 'place')})" if later else ""
    return text(
        "How this was concluded",
        f"{int(seen.sent.sum()):,} probes between {seen.pairs:,} pairs of {len(seen.servers):,} servers, of which "
        f"{placed:,} have a pod{told}. "
        "A packet was dropped where the answer took about 3 s or 9 s (the first packet of a "
        "connection is repeated after 3 s and again after 6 s); 9 s count once, and probes without an answer not at "
        f"all. What is above a limit (drops {100 * drop_limit:g} %, 1 % of the answers above {p99_us / 1000:g} ms) by "
        "more than chance, also without the worst quarter of its parts and of its peers, is put down to the Spine, a "
        f"podset, a pod or a server, the largest first, if it was spread over {persist} minutes or more (Guo et al., "
        "Pingmesh, SIGCOMM 2015; the tests and the order are ours).",
    )


def pieces(
    window: Window,
    seen: Observed,
    culprits: list[Named],
    passing: list[Named],
    scopes: list[Scope],
    symptoms: Symptoms,
    limits: tuple[float, float],
    budget: int,
    persist: int,
) -> tuple[Evidence, ...]:
    shown: list[Evidence | None] = []
    if culprits:
        shown.append(
            blamed(
                window,
                culprits[:50],
                "Blamed",
                _SHARES,
            )
        )
    shown.append(advice(culprits, budget))
    if passing:
        shown.append(blamed(window, passing[:10], "Seen, but not for long enough", "A burst is no fault."))
    shown += [
        heat_map(seen, *limits),
        black_holes(seen, symptoms),
        sla(scopes),
        cleared(seen, scopes, culprits),
        method(window, seen, *limits, persist),
    ]
    return tuple(one for one in shown if one is not None)
