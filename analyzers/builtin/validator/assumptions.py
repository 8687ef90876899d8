"""What the validator assumes, checked on the window, and what it does with its probabilities where that fails."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyzers.builtin.nodes.defects import WANTED
from analyzers.builtin.nodes.outcome import Judged, Outcome
from analyzers.builtin.nodes.samples import samples
from analyzers.builtin.nodes.shifts import Shift
from analyzers.builtin.text import listed, percent, so_many
from analyzers.contract import Assumption, Window

LOWERED = 0.85
"""Most that is stated where an assumption fails that bears on who is blamed."""
_MOST_MISSING = 0.1
"""Share of node and metric pairs without a result from which on results are missing for a reason."""
_WIDE = 0.0125
"""Spread of nodes above which 5 % worse is not seen any more: four spreads are allowed."""
_MOST_WIDE = 0.34


def assumptions(
    outcome: Outcome, window: Window, unusable: str | None, kinds: Sequence[Shift] = ()
) -> tuple[Assumption, ...]:
    """The assumptions of one window, in a fixed order. `unusable` says why rules cannot be applied; `kinds` are kinds
    of machine that no label tells apart."""
    learnt = [one for one in outcome.judged if one.criteria is not None]
    found = [_sampling(learnt), _labels(outcome, kinds)]
    if learnt:
        found.insert(1, _noise(learnt))
    if window.history:
        found.insert(0, _history(outcome, learnt, window))
    if unusable is not None:
        found.append(Assumption("rules", False, unusable))
    return tuple(found)


def lowered(checked: Sequence[Assumption]) -> float:
    """The most that may be stated of a suspect."""
    failed = {one.name for one in checked if not one.holds}
    return LOWERED if failed & {"history", "sampling", "noise", "topology"} else 1.0


def _history(outcome: Outcome, learnt: Sequence[Judged], window: Window) -> Assumption:
    changed = sum(one.why == "repeatability" for one in outcome.unjudged)
    earlier = window.history[-1].sums["samples"]
    levels = {stratum: float(np.median(one.quantiles(1))) for stratum, one in samples(earlier).items()}
    moved = [
        (one.criteria.scale / levels[one.stratum] - 1, one.stratum.shown)
        for one in learnt
        if one.criteria is not None and levels.get(one.stratum, 0.0) > 0
    ]
    far = sorted((-abs(by), by, name) for by, name in moved if abs(by) > 0.05)
    if far:
        _, by, name = far[0]
        detail = f"The whole fleet changed by {100 * by:+.1f} % in {name} since the window before"
        more = f" (and in {so_many(len(far) - 1, 'other metric')})" if len(far) > 1 else ""
        return Assumption("history", False, f"{detail}{more}: nodes are compared with each other only.")
    if changed:
        detail = f"{so_many(changed, 'metric')} did not repeat from one time to the next and judged nobody."
        return Assumption("history", False, detail)
    return Assumption("history", True, f"{so_many(len(moved), 'metric')} repeat from the window before.")


def _sampling(learnt: Sequence[Judged]) -> Assumption:
    if not learnt:
        return Assumption("sampling", False, "No metric was measured on enough nodes.")
    fewest = int(np.median([one.learnt_from for one in learnt]))
    by_kind: dict[str, set[str]] = {}
    for one in learnt:
        by_kind.setdefault(one.stratum.sku, set()).update(one.nodes)
    cells = sum(len(by_kind[one.stratum.sku]) for one in learnt)
    missing = 1 - sum(len(one.nodes) for one in learnt) / cells
    if fewest < WANTED:
        detail = (
            f"A metric was measured on {so_many(fewest, 'node')} (median): how far healthy nodes differ is taken "
            f"from other fleets as far as fewer than {WANTED} do not tell."
        )
        return Assumption("sampling", False, detail)
    if missing > _MOST_MISSING:
        detail = f"{percent(missing)} of the results of measured nodes are missing."
        return Assumption("sampling", False, detail)
    measured = f"A metric was measured on {so_many(fewest, 'node')} (median)"
    return Assumption("sampling", True, f"{measured}; {percent(missing)} of the results are missing.")


def _noise(learnt: Sequence[Judged]) -> Assumption:
    wide = [
        (one.criteria.spread, one.stratum.shown)
        for one in learnt
        if one.criteria and one.criteria.spread > _WIDE
    ]
    if len(wide) > _MOST_WIDE * len(learnt):
        most, name = max(wide)
        detail = (
            f"In {len(wide)} of {so_many(len(learnt), 'metric')} healthy nodes differ by more than {percent(_WIDE)} "
            f"({percent(most)} in {name}): what is worse by less than four times that is not seen."
        )
        return Assumption("noise", False, detail)
    usual = float(np.median([one.criteria.spread for one in learnt if one.criteria]))
    return Assumption("noise", True, f"Healthy nodes differ by {percent(usual)} (median of metrics).")


def _labels(outcome: Outcome, kinds: Sequence[Shift]) -> Assumption:
    split = sum(one.why == "split" for one in outcome.unjudged)
    if outcome.other_kind:
        names = tuple(sorted(outcome.other_kind))
        detail = (
            f"{listed(names)}: results are those of another sku than the label says; not blamed for that."
        )
        return Assumption("topology", False, detail)
    if kinds:
        one = kinds[0]
        detail = (
            f"{len(one.nodes)} of {one.of} nodes ({listed(one.nodes)}) are {100 * abs(one.by):.2g} % from the others "
            f"in {one.metrics[0].shown} and {so_many(len(one.metrics) - 1, 'other metric')}: two kinds of machine "
            "under one label. Give each kind its `sku`."
        )
        return Assumption("topology", False, detail)
    if split:
        detail = f"In {so_many(split, 'metric')} the nodes are of two kinds, which no label tells apart."
        return Assumption("topology", False, detail)
    return Assumption("topology", True, "The results of each node agree with its sku.")
