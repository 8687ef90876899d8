"""What the method takes for granted, checked on the window: history, sampling, noise, topology."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview.baseline import Baseline
from analyzers.builtin.deepview.noise import ENOUGH_HISTORY
from analyzers.builtin.deepview.observed import Observed, component_sets, holds_any, kinds_of
from analyzers.builtin.deepview.selection import Blamed, Judges, Rules
from analyzers.builtin.text import percent, so_many
from analyzers.contract import Assumption, Window

Ints = NDArray[np.int64]

_UNMATCHED = 0.05
"""Share of failures that may be of units placed nowhere, or of components on no path."""

_WHOLLY = 0.8
"""Share of paths on which every attempt failed from which on only failures are told, not attempts."""

_GONE = 0.2
"""Share of the usual attempts whose components may be missing from the window."""

_LEFT = 3.0
"""Nats that are left for a component of which the noise is as learnt in one case of twenty at most."""

_RESTLESS = 0.08
"""Share of components that may show so much."""

_RULE = 0.85
"""Share of paths that must obey a rule of which component lies below which, for it to be one."""

_ONE_EACH = 0.8
"""Share of paths with exactly one component of a kind, for the kind to have such rules."""

_SAMPLED = 20_000
"""Paths that are looked at for such rules."""

_RISEN = 1.25
"""Times the highest rate that history lets expect which nearly all components may fail."""

_STRAY = 0.04
"""Share of the paths that fail badly or should that may do so with nobody blamed on them, or not though somebody is."""


def check(
    window: Window, judges: Judges, blamed: Blamed, rules: Rules, baseline: Baseline
) -> tuple[Assumption, ...]:
    """The four assumptions with the figures that were checked."""
    return (
        _history(baseline),
        _sampling(window, judges),
        _noise(judges, blamed, rules, baseline),
        _topology(judges, blamed),
    )


def _history(baseline: Baseline) -> Assumption:
    if baseline.windows < ENOUGH_HISTORY:
        detail = f"{so_many(baseline.windows, 'window')} of history, {ENOUGH_HISTORY} are needed to know what is usual."
        return Assumption("history", False, detail)
    holds = 2 * baseline.faulty <= baseline.windows
    left_out = (
        f"components stood out in {baseline.faulty} of {baseline.windows} windows and were left out there."
    )
    return Assumption("history", holds, left_out[0].upper() + left_out[1:])


def _sampling(window: Window, judges: Judges) -> Assumption:
    seen = judges.seen
    lost = window.sums["failing"].unmatched + seen.unknown
    failed = float(seen.failures.sum())
    if lost > _UNMATCHED * (lost + failed) and lost >= 3:
        return Assumption(
            "sampling", False, f"{so_many(lost, 'failure')} of {lost + failed:.0f} lie on no known path."
        )
    wholly = int((seen.failures >= judges.tried).sum())
    used = int((seen.tried > 0).sum())
    if used and wholly >= _WHOLLY * used:
        return Assumption(
            "sampling", False, f"Every attempt failed on {wholly} of {used} paths: successes may be missing."
        )
    gone, usual = _gone(window, seen)
    detail = f"{percent(gone)} of the usual {usual:,.0f} attempts were on components that are absent from this window."
    return Assumption("sampling", gone <= _GONE, detail)


def _gone(window: Window, seen: Observed) -> tuple[float, float]:
    """The share of the last window's attempts on paths with a component that is absent now, and these attempts."""
    if not window.history:
        return 0.0, seen.total
    before = window.history[-1].sums["paths"]
    sets = component_sets(before)
    tried = np.asarray(before.values["attempts"], dtype=np.float64)
    present = {name for name, carried in zip(seen.names, seen.carried.tolist(), strict=True) if carried > 0}
    absent = [j for j, name in enumerate(sets.names) if name not in present]
    if not absent or tried.sum() <= 0:
        return 0.0, float(tried.sum())
    return float(tried[holds_any(sets, absent)].sum() / tried.sum()), float(tried.sum())


def _noise(judges: Judges, blamed: Blamed, rules: Rules, baseline: Baseline) -> Assumption:
    found = judges.evidence(blamed, rules)
    open_ = rules.allowed[found.component] & ~np.isin(found.component, blamed.chosen)
    count, every = int((found.evidence[open_] >= _LEFT).sum()), int(rules.allowed.sum())
    if baseline.risen > _RISEN:
        detail = f"Nearly all components fail {baseline.risen:.1f} times as often as history lets expect."
        return Assumption("noise", False, detail)
    holds = count <= max(2.0, _RESTLESS * every)
    return Assumption(
        "noise", holds, f"{count} of {so_many(every, 'component')} fail more than usual and are not blamed."
    )


def _topology(judges: Judges, blamed: Blamed) -> Assumption:
    odd, one, other = _odd_parents(judges.seen)
    if odd:
        detail = f"{so_many(odd, 'path')} with a {one} name another {other} than most paths with it do."
        return Assumption("topology", False, detail)
    failing, healthy, plain, paths = judges.strays(blamed)
    astray = failing + healthy
    holds = astray <= (0 if blamed.chosen else 1) or astray <= _STRAY * plain
    detail = (
        f"{failing} of {so_many(paths, 'path')} fail badly with nobody blamed on them, and {healthy} hardly fail with "
        "somebody."
    )
    return Assumption("topology", holds, detail)


def _odd_parents(seen: Observed) -> tuple[int, str, str]:
    """How many paths break the rule that a component of one kind lies below one of another, and the two kinds.

    A rule is what nearly all paths obey: a rack is in one cluster, so a path that names its rack and another cluster is
    recorded wrongly. 0 where all obey or there is no rule.
    """
    kinds, kind_of = kinds_of(seen.names)
    step = max(1, -(-len(seen.paths) // _SAMPLED))
    owner = np.repeat(np.arange(len(seen.paths)), np.diff(seen.paths.indptr))
    looked = owner % step == 0
    owner, column = owner[looked] // step, seen.paths.indices[looked]
    shape = len(kinds), -(-len(seen.paths) // step)
    member = np.full(shape, -1, dtype=np.int64)
    member[kind_of[column], owner] = column
    held = np.bincount(kind_of[column] * shape[1] + owner, minlength=shape[0] * shape[1]).reshape(shape)
    single = [k for k in range(len(kinds)) if (held[k] == 1).mean() > _ONE_EACH and (kind_of == k).sum() > 1]
    worst = 0, "", ""
    for below in single:
        for above in single:
            if (kind_of == above).sum() < (kind_of == below).sum():
                odd = _against(member[below], member[above], len(seen.names))
                worst = max(worst, (odd, kinds[below].replace("_", " "), kinds[above].replace("_", " ")))
    return worst


def _against(below: Ints, above: Ints, names: int) -> int:
    """How many paths have another member of the upper kind than most paths of their lower one, if few have."""
    known = (below >= 0) & (above >= 0)
    pairs, counts = np.unique(below[known] * names + above[known], return_counts=True)
    lower, at = np.unique(pairs // max(names, 1), return_inverse=True)
    most = np.zeros(len(lower), dtype=np.int64)
    np.maximum.at(most, at, counts)
    obey, of = int(most.sum()), int(counts.sum())
    return of - obey if of and _RULE * of <= obey < of else 0
