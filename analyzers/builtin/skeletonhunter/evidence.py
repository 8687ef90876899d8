"""Evidence of a skeletonhunter verdict: the blamed, anomalous pairs, round-trip times over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from analyzers.builtin.skeletonhunter.analyzer import SLICE
from analyzers.builtin.skeletonhunter.detect import Anomalies
from analyzers.builtin.skeletonhunter.localise import Located
from analyzers.builtin.skeletonhunter.observed import P50, Observed
from analyzers.builtin.skeletonhunter.skeleton import SKELETON, Skeleton, peers, share_of_mesh
from analyzers.builtin.skeletonhunter.verdict import probability, span, title
from analyzers.builtin.text import NATS
from analyzers.builtin.vega import COLOURS, SCHEMA, time_axis
from analyzers.contract import Evidence, Window, chart, table, text
from ingest.log.types import rfc3339

MOST_LINES, MOST_CURVES = 20, 5


def pieces(
    window: Window, seen: Observed, found: Anomalies, located: Located, margin: float
) -> tuple[Evidence, ...]:
    """The evidence of detection and localisation; nothing of a window without an anomaly."""
    order = worst(seen, found, located)
    shown = []
    if located.named:
        shown.append(_blamed(window, located, margin))
    if order:
        shown += [_pairs(seen, found, located, order), _times(window, seen, order)]
    if located.named:
        shown.append(text("Method", ACCOUNT))
    return tuple(shown)


ACCOUNT = (
    "Pairs are anomalous by the local outlier factor of 30-second slices against the ten before, by Welch's test of "
    "the mean logarithm against the history, or by losses. Overlay faults are found by replaying flow tables, others "
    "by votes of the paths of late and lossy probes; offloaded flow rules are compared with those of the virtual "
    "switch. Method: SkeletonHunter (Liu et al., SIGCOMM 2025)."
)


def worst(seen: Observed, found: Anomalies, located: Located) -> list[int]:
    """Pairs of the suspects and unexplained ones, those with most losses, then the latest first."""
    chosen = sorted({at for one in located.named for at in one.pairs} | set(located.unexplained))
    lost = seen.lost[:, seen.now].sum(axis=1)
    return sorted(chosen, key=lambda at: (-int(lost[at]), -float(found.ratio[at]), at))


def _blamed(window: Window, located: Located, margin: float) -> Evidence:
    rows = []
    for one in located.named:
        first, last = span(window, one)
        score, charge = probability(one, margin), one.charge
        rows.append(
            (
                one.component,
                title(one),
                None if score is None else round(score, 3),
                len(one.pairs),
                None if charge is None else int(charge.carried),
                None if charge is None else round(charge.lost),
                None if charge is None else round(charge.strength, 1),
                f"{first:%H:%M:%S} to {last:%H:%M:%S}",
                ", ".join(one.others) or "–",
            )
        )
    columns = (
        "component", "what", "probability", "anomalous pairs", "probes", "lost or late", "evidence (nats)", "from, to",
        "cannot be told from",
    )  # fmt: skip
    return table("Blamed", columns, tuple(rows), NATS)


def _pairs(seen: Observed, found: Anomalies, located: Located, order: list[int]) -> Evidence:
    blamed = {at: one.component for one in located.named for at in one.pairs}
    rows = []
    for at in order[:MOST_LINES]:
        src, dst, layer = seen.pairs[at]
        sent, lost = int(seen.sent[at, seen.now].sum()), int(seen.lost[at, seen.now].sum())
        usual, now = (_median(seen, at, part) for part in (slice(0, seen.first), seen.now))
        how = [
            name
            for name, marked in (
                ("short-term", found.late[at].any()),
                ("long-term, by ranks" if found.ranked[at] else "long-term", found.drifted[at]),
                ("late all along", found.level[at]),
                ("loss", lost > 0),
            )
            if marked
        ]
        rows.append(
            (
                src,
                dst,
                layer,
                sent,
                lost,
                usual,
                now,
                round(float(found.factor[at]), 1),
                ", ".join(how),
                blamed.get(at, "–"),
            )
        )
    columns = (
        "source", "destination", "layer", "probes", "lost", "median before (us)", "median now (us)",
        "outlier factor", "anomaly", "explained by",
    )  # fmt: skip
    more = f" {len(order) - MOST_LINES:,} more are not shown." if len(order) > MOST_LINES else ""
    return table("Anomalous pairs", columns, tuple(rows), f"Worst first.{more}")


def _median(seen: Observed, at: int, part: slice) -> float | None:
    values = seen.features[at, part, P50]
    values = values[np.isfinite(values)]
    return round(float(np.exp(np.median(values))), 2) if len(values) else None


def _times(window: Window, seen: Observed, order: list[int]) -> Evidence:
    """Median round-trip times of the worst pairs beside the median of all, over the last slices."""
    values: list[dict[str, Any]] = []
    start = window.start - seen.first * SLICE
    slices = range(max(0, seen.first - 20), seen.sent.shape[1])
    everyone = np.array([_all(seen.features[:, at, P50]) for at in range(seen.sent.shape[1])])
    names = []
    for at in order[:MOST_CURVES]:
        names.append(f"{seen.pairs[at][0]} to {seen.pairs[at][1]}, {seen.pairs[at][2]}")
        curve = seen.features[at, :, P50]
        values += _points(names[-1], curve, start, slices)
    values += _points("median of all pairs", everyone, start, slices)
    names.append("median of all pairs")
    spec = {
        "$schema": SCHEMA,
        "width": "container",
        "height": 200,
        "data": {"values": values},
        "mark": {"type": "line", "point": True, "tooltip": {"content": "data"}},
        "encoding": {
            "x": time_axis("time", "%H:%M"),
            "y": {
                "field": "rtt_us", "type": "quantitative", "title": "median round-trip time (us)",
                "scale": {"type": "log"},
            },
            "color": {
                "field": "pair", "type": "nominal", "title": None,
                "scale": {"domain": names, "range": [*COLOURS[: len(names) - 1], COLOURS[-1]]},
                "legend": {"orient": "top", "columns": 1},
            },
        },
    }  # fmt: skip
    note = "A gap is a slice without answers."
    return chart("Round-trip times of the worst pairs", spec, note)


def _all(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else float("nan")


def _points(name: str, curve: Any, start: Any, slices: range) -> list[dict[str, Any]]:
    return [
        {
            "pair": name,
            "time": rfc3339(start + at * SLICE),
            "rtt_us": round(float(np.exp(curve[at])), 2) if np.isfinite(curve[at]) else None,
        }
        for at in slices
    ]


def degrees(found: Sequence[Skeleton]) -> dict[str, Any]:
    """Parallelism of the largest job, and its ping list as a share of the full mesh."""
    if not found:
        return {}
    one = found[0]
    stated = one.stage is not None
    return {
        "job": one.series.job,
        "jobs": len(found),
        "dp": one.dp if stated else None,
        "pp": one.pp if stated else None,
        "tp": one.tp if stated else None,
        "confidence": one.confidence,
        "ping_list_share": round(share_of_mesh(peers(one.series.nics, *_places(one))), 5),
    }


def skeletons(found: Sequence[Skeleton]) -> list[Evidence]:
    """A table for each job."""
    return [_skeleton(one) for one in found]


def _places(one: Skeleton) -> tuple[list[int] | None, list[int] | None]:
    if one.stage is None or one.replica is None:
        return None, None
    return one.stage.tolist(), one.replica.tolist()


def _skeleton(one: Skeleton) -> Evidence:
    stage, replica = _places(one)
    rows = tuple(
        (
            host,
            None if stage is None else stage[at],
            None if replica is None else replica[at],
            ", ".join(cards),
        )
        for at, (host, cards) in enumerate(zip(one.series.hosts, one.series.nics, strict=True))
    )
    if stage is None:
        note = f"No skeleton: {one.reason}. The basic list stays: the same rail on all other hosts."
    else:
        note = (
            f"DP {one.dp}, PP {one.pp}, TP {one.tp}, confidence {one.confidence:g}: mean silhouette "
            f"{one.silhouette:.2f}, spread of traffic within clusters {one.uneven:.1%}. Stages are numbered along the "
            "pipeline, in either direction."
        )
    return table(SKELETON + one.series.job, ("host", "stage", "replica", "cards"), rows, note)
