"""Evidence of a verdict: the failures of each blamed node, its results against the fleet's, and the nearly blamed.

Everything is inline; charts are Vega-Lite with a few hundred rows at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.nodes.causes import Cause, Shift
from analyzers.builtin.nodes.outcome import Charge, Failure, Judged, Outcome
from analyzers.builtin.nodes.samples import Sample, samples
from analyzers.builtin.validator.calibration import probability
from analyzers.builtin.validator.published import Violation
from analyzers.contract import Evidence, Params, Window, chart, table, text

Json = dict[str, Any]
Floats = NDArray[np.float64]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

_WARM = ["#c0392b", "#e67e22", "#8e44ad", "#16a085"]
_GREY = "#9aa5b1"
_SERIES = 3  # nodes drawn against the fleet
_POINTS = 24  # points of a curve
_FAILURES = 3  # metrics of one node in the table
_DOTS = 240
_STRIPS = 8
_NEAR = 8
_ROWS = 40


def change(mean: float, usual: float) -> str:
    """`9.8 % lower` or `12 % higher`."""
    share = 100 * (mean / usual - 1)
    return f"{abs(share):.3g} % {'lower' if share < 0 else 'higher'}"


def of_the_blamed(
    outcome: Outcome, found: Sequence[Cause], most: float, params: Params
) -> tuple[Evidence, ...]:
    """Evidence where nodes are blamed; `most` is the highest probability that is stated."""
    worst = outcome.charges[0].failures[0].judged
    drawn = [] if worst.criteria is None else [_against_fleet(worst)]
    return (
        *_common(found),
        _failures(outcome, most),
        *drawn,
        *_strips(outcome),
        *_cleared(outcome),
        _criteria(outcome),
        *_unjudged(outcome),
        text("Method", _account(params)),
    )


def of_the_quiet(outcome: Outcome, params: Params) -> tuple[Evidence, ...]:
    return (
        *_strips(outcome),
        *_cleared(outcome),
        _criteria(outcome),
        *_unjudged(outcome),
        text("Method", _account(params)),
    )


def of_the_unjudged(outcome: Outcome) -> tuple[Evidence, ...]:
    judged = (_criteria(outcome),) if outcome.judged else ()
    return (*_unjudged(outcome), *judged)


def of_shifts(found: Sequence[Shift], window: Window) -> tuple[Evidence, ...]:
    """The nodes of each part of the fleet that became worse together, now and in the earliest round known."""
    rows: list[tuple[Any, ...]] = []
    now = samples(window.sums["samples"])
    past = [samples(one.sums["samples"]) for one in window.history]
    for one in found:
        stratum = one.metrics[0]
        before = _means(next(earlier[stratum] for earlier in past if stratum in earlier))
        after = _means(now[stratum])
        rows += [
            (node, stratum.shown, before.get(node), after.get(node), len(one.metrics)) for node in one.nodes
        ]
    columns = ("node", "metric", "mean before", "mean now", "equivalent metrics")
    note = "Changes of the fleet fall into two groups that are far apart; these nodes are the worse one."
    return (table("Nodes that became worse together", columns, tuple(rows[:_DOTS]), note),) if rows else ()


def _means(sample: Sample) -> dict[str, float]:
    return dict(zip(sample.nodes, sample.quantiles(64).mean(axis=1).tolist(), strict=True))


def of_violations(wrong: Sequence[Violation]) -> tuple[Evidence, ...]:
    """Violations of the given rules or baseline, as evidence."""
    rows = tuple(
        (node, one.category or None, "; ".join(one.details[:_FAILURES]), len(one.details))
        for one in wrong
        for node in one.nodes
    )
    columns = ("node", "category", "violation", "checks failed")
    note = "Judged by the rules and the baseline of the parameters, not against other nodes."
    return (table("Violations of the given limits", columns, rows[:_ROWS], note),) if rows else ()


def _common(found: Sequence[Cause]) -> tuple[Evidence, ...]:
    """The nodes that share a cause."""
    rows = tuple(
        (one.parent, node, len(one.nodes)) for one in found if len(one.nodes) > 1 for node in one.nodes
    )
    columns, note = (
        ("contained in", "node", "nodes with this cause"),
        "These nodes are worse in the same metrics, by about as much: look for what they share before each of them.",
    )
    return (table("Nodes with a common cause", columns, rows[:_DOTS], note),) if rows else ()


def _failures(outcome: Outcome, most: float) -> Evidence:
    """One row for each blamed node and metric, the worst of each node."""
    each = _FAILURES if len(outcome.charges) * _FAILURES <= _ROWS else 1
    rows: list[tuple[Any, ...]] = []
    for charge in outcome.charges:
        rows += [
            (charge.node, *_figures(failure), _probability(charge, most))
            for failure in charge.failures[:each]
        ]
    hidden = sum(max(0, len(charge.failures) - each) for charge in outcome.charges)
    note = (
        "Similarity is 1 less the part of the area between the two distributions in which the node is worse."
    )
    note += f" {hidden} more metrics of these nodes are not shown." if hidden else ""
    columns = ("node", *_COLUMNS, "probability of the node")
    return table("Blamed nodes and their failed metrics", columns, tuple(rows), note)


def _probability(charge: Charge, most: float) -> float | None:
    tested = charge.failures[0].judged.criteria is None
    return None if tested else round(min(most, probability(charge.by_chance)), 3)


_COLUMNS = ("metric", "runs", "mean", "fleet", "change", "similarity", "least allowed", "times the spread")


def _figures(failure: Failure) -> tuple[Any, ...]:
    one, at = failure.judged, failure.at
    if one.criteria is None:
        return one.stratum.shown, int(one.runs[at]), float(one.means[at]), 0.0, "not 0", None, None, None
    mean = float(one.means[at])
    return (
        one.stratum.shown,
        int(one.runs[at]),
        _digits(mean),
        _digits(one.criteria.scale),
        f"{100 * (mean / one.criteria.scale - 1):+.1f} %",
        round(1 - float(one.worse[at]), 4),
        round(1 - float(one.bar[at]), 4),
        round(failure.spreads, 1),
    )


def _cleared(outcome: Outcome) -> tuple[Evidence, ...]:
    """The nodes that came nearest to being blamed, each with the metric in which it did."""
    blamed = {charge.node for charge in outcome.charges}
    nearest: dict[str, tuple[float, Failure]] = {}
    for one in outcome.judged:
        if one.criteria is None:
            continue
        share = one.worse / one.bar
        for at in np.argsort(-share, kind="stable")[: _NEAR + len(blamed)].tolist():
            node, found = one.nodes[at], float(share[at])
            if node not in blamed and found > nearest.get(node, (0.0, None))[0]:
                nearest[node] = found, Failure(one, at)
    best = sorted(nearest.items(), key=lambda item: (-item[1][0], item[0]))[:_NEAR]
    rows = tuple((node, *_figures(failure), _spared(failure)) for node, (_, failure) in best)
    columns, note = ("node", *_COLUMNS, "why it is cleared"), "The nodes that came nearest to the bar."
    return (table("Looked into and cleared", columns, rows, note),) if rows else ()


def _spared(failure: Failure) -> str:
    worse, bar = (100 * float(one[failure.at]) for one in (failure.judged.worse, failure.judged.bar))
    loss = f"{worse:.2g} % worse in {failure.judged.stratum.shown}"
    if worse <= bar:
        return f"{loss}, {bar:.2g} % are allowed"
    expected = float(failure.judged.by_chance[failure.at])
    return f"{loss}, but among so many healthy nodes {expected:.2g} that differ as much are to be expected by chance"


def _criteria(outcome: Outcome) -> Evidence:
    rows = []
    order = sorted(outcome.judged, key=lambda one: (-int(one.failing.sum()), one.stratum))
    for one in order[:_ROWS]:
        learnt = one.criteria
        rows.append(
            (
                one.stratum.shown,
                len(one.nodes),
                one.learnt_from,
                None if learnt is None else _digits(learnt.scale),
                None if learnt is None else f"{100 * learnt.spread:.2g} %",
                None if one.repeatability is None else round(one.repeatability, 4),
                int(one.failing.sum()),
            )
        )
    hidden = len(outcome.judged) - len(rows)
    note = "The spread is how far healthy nodes differ from each other." + (
        f" {hidden} more metrics without a failed node are not shown." if hidden else ""
    )
    columns = ("metric", "nodes", "learnt from", "typical mean", "spread", "repeatability", "failing")
    return table("Normal values of the fleet", columns, tuple(rows), note)


def _unjudged(outcome: Outcome) -> tuple[Evidence, ...]:
    if not outcome.unjudged:
        return ()
    order = sorted(outcome.unjudged, key=lambda one: (one.why != "split", one.stratum))
    rows = tuple((one.stratum.shown, one.reason) for one in order[:_ROWS])
    hidden = len(order) - len(rows)
    note = f"{hidden} more are not shown." if hidden else ""
    return (table("Metrics that were not judged", ("metric", "why"), rows, note),)


def _against_fleet(one: Judged) -> Evidence:
    """The distributions of the worst nodes in one metric against the fleet's."""
    assert one.criteria is not None
    order = np.lexsort((np.arange(len(one.nodes)), -one.worse))
    drawn = [at for at in order.tolist() if one.failing[at]][:_SERIES]
    size = one.quantiles.shape[1]
    points = np.unique(np.linspace(0, size - 1, min(size, _POINTS)).round().astype(np.int64))
    shares = ((points + 0.5) / size).tolist()
    cleared = one.quantiles[~one.failing]
    names = [one.nodes[at] for at in drawn]
    curves: list[tuple[str, Floats]] = [(one.nodes[at], one.quantiles[at]) for at in drawn]
    curves.append((TYPICAL, one.criteria.quantiles))
    if len(cleared):
        low, high = np.quantile(cleared, [0.05, 0.95], axis=0)
        curves += [("5 % of nodes", low), ("95 % of nodes", high)]
    values = [
        {"node": name, "value": _digits(float(curve[at])), "share": round(share, 4)}
        for name, curve in curves
        for at, share in zip(points.tolist(), shares, strict=True)
    ]
    spec = _curves(values, names, [name for name, _ in curves], one.stratum.metric)
    worse = "left" if one.direction == "higher" else "right"
    note = f"Each line is one node's runs, lowest to highest. Worse is to the {worse}; grey is what the fleet does."
    return chart(f"Runs of the blamed against the fleet: {one.stratum.shown}", spec, note)


TYPICAL = "typical node"


def _curves(values: list[Json], blamed: list[str], names: list[str], metric: str) -> Json:
    colours = [*_WARM[: len(blamed)], "#4b5563", *[_GREY] * (len(names) - len(blamed) - 1)]
    return {
        "$schema": SCHEMA,
        "width": "container",
        "height": 220,
        "data": {"values": values},
        "mark": {"type": "line", "interpolate": "step-after", "tooltip": {"content": "data"}},
        "encoding": {
            "x": {
                "field": "value",
                "type": "quantitative",
                "title": f"{metric} (unit of the benchmark)",
                "scale": {"zero": False},
            },
            "y": {
                "field": "share",
                "type": "quantitative",
                "title": "share of runs up to here",
                "axis": {"format": "%"},
            },
            "order": {"field": "share", "type": "quantitative"},
            "color": {
                "field": "node",
                "type": "nominal",
                "title": None,
                "scale": {"domain": names, "range": colours},
                "legend": {"orient": "top"},
            },
        },
    }


def _strips(outcome: Outcome) -> tuple[Evidence, ...]:
    """Every node as a dot by metric: how far its mean is from the fleet's."""
    shown = [one for one in outcome.judged if one.criteria is not None]
    shown = sorted(shown, key=lambda one: (-int(one.failing.sum()), one.stratum))[:_STRIPS]
    if not shown:
        return ()
    most = max(1, _DOTS // len(shown))
    values = [dot for one in shown for dot in _dots(one, most)]
    spec: Json = {
        "$schema": SCHEMA,
        "width": "container",
        "height": {"step": 26},
        "data": {"values": values},
        "mark": {"type": "tick", "thickness": 2, "tooltip": {"content": "data"}},
        "encoding": {
            "x": {
                "field": "worse",
                "type": "quantitative",
                "title": "mean, worse than typical by (share)",
                "axis": {"format": "%"},
            },
            "y": {
                "field": "metric",
                "type": "nominal",
                "title": None,
                "sort": [one.stratum.shown for one in shown],
            },
            "color": {
                "field": "judgement",
                "type": "nominal",
                "title": None,
                "scale": {"domain": ["blamed", "cleared"], "range": [_WARM[0], _GREY]},
                "legend": {"orient": "top"},
            },
        },
    }
    note = "A tick is a node; of the cleared, those furthest out and an even choice of the rest are drawn."
    return (chart("Every node against the typical one", spec, note),)


def _dots(one: Judged, most: int) -> list[Json]:
    assert one.criteria is not None
    sign = -1 if one.direction == "higher" else 1
    off = sign * (one.means / one.criteria.scale - 1)
    order = np.lexsort((np.arange(len(off)), -off))
    failing = [at for at in order.tolist() if one.failing[at]][:most]
    cleared = [at for at in order.tolist() if not one.failing[at]]
    room = max(2, most - len(failing))
    if len(cleared) > room:
        cleared = [cleared[i] for i in np.unique(np.linspace(0, len(cleared) - 1, room).round().astype(int))]
    return [
        {
            "metric": one.stratum.shown,
            "node": one.nodes[at],
            "worse": round(float(off[at]), 4),
            "judgement": "blamed" if one.failing[at] else "cleared",
        }
        for at in (*failing, *cleared)
    ]


def _account(params: Params) -> str:
    return (
        "For each metric and kind of machine the most typical node was found by dropping nodes that are less than "
        f"{params['similarity']:g} similar to it until the rest agreed (Xiong et al., USENIX ATC 2024). A node is "
        "blamed if the part of the area between its distribution and the typical one in which it is worse exceeds "
        f"1 - {params['similarity']:g}, and {params['spreads']:g} times what healthy nodes differ by, judged from the "
        f"better half of the fleet. Of the blamed at most {100 * float(params['most_false']):g} % are expected to be "
        "healthy nodes that are so far off by chance, by how far the better half reaches, or by how much nodes change "
        "from one time to the next if the node has become worse. Metrics in which more than "
        f"{100 * float(params['most_failing']):g} % of the nodes are unlike the others blame no node: that is a "
        "matter of the fleet."
    )


def _digits(number: float) -> float:
    return float(f"{number:.5g}")
