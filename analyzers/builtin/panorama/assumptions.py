"""The assumptions behind the probabilities, checked on each window, and what a probability loses where one fails."""

from __future__ import annotations

import math

import numpy as np

from analyzers.builtin.panorama.findings import Finding, Found
from analyzers.builtin.panorama.usual import ENOUGH_WINDOWS
from analyzers.builtin.text import listed, percent, so_many
from analyzers.contract import Assumption

_FAR = 3.5
"""Standard deviations above the usual share from which a pair's failures are far from it."""
_MOST_FAR = 0.01
"""Share of pairs far from the usual up to which the noise is as learnt."""

_MOST_HANGING = 0.03
"""Share of calls without an answer in the pairs with fewest, up to which reports are taken as complete."""
_MOST_MUTE = 0.5
"""Share of the observers without one good report, now or before, from which only failures seem to be reported."""

_WITNESSED = 0.8
"""Share of the subjects that should have two observers or more."""

_LOWERED = {"history": 1.0, "sampling": 1.0, "noise": 2.0, "witnesses": 0.0}
"""Nats that a probability's odds lose where an assumption does not hold."""
_CHRONIC = 1.5
"""The same for a component that has failed so in all of the history: it may be what is usual there."""
_ALONE = 1.0
"""The same for a component with one observer."""


def checked(found: Found) -> tuple[Assumption, ...]:
    return (_history(found), _sampling(found), _noise(found), _witnesses(found))


def lowered(found: Found, one: Finding, probability: float) -> float:
    """The probability of a finding after what it loses to assumptions that do not hold."""
    lost = sum(_LOWERED[each.name] for each in found.assumptions if not each.holds)
    if one.component in chronic(found):
        lost += _CHRONIC
    if one.asked == 1:
        lost += _ALONE
    if not lost:
        return probability
    odds = math.log(probability / (1 - probability)) - lost
    return 1 / (1 + math.exp(-odds))


def chronic(found: Found) -> set[int]:
    """Components that have failed more, in some context, than may be usual, for as long as is known."""
    usual = found.usual
    if usual.windows < ENOUGH_WINDOWS:
        return set()
    return set(found.seen.place_subject[usual.chronic].tolist())


def only_failures(found: Found) -> bool:
    """Whether most observers report no good answer, in this window or before: failures alone seem to be reported."""
    seen = found.seen
    good = seen.healthy.sum(axis=1) + found.usual.good_before
    heard = np.unique(seen.observer)
    well = np.bincount(seen.observer, good, minlength=len(seen.components))[heard]
    return bool(np.mean(well == 0) > _MOST_MUTE)


def _history(found: Found) -> Assumption:
    usual = found.usual
    if usual.windows < ENOUGH_WINDOWS:
        before = so_many(usual.windows, "window")
        detail = (
            f"{before} before, {ENOUGH_WINDOWS} needed: this window alone says how many calls usually fail."
        )
        return Assumption("history", False, detail)
    names = sorted(found.seen.components[one] for one in chronic(found))
    if names:
        verb = "has" if len(names) == 1 else "have"
        detail = (
            f"{listed(tuple(names)).replace(' or ', ' and ')} {verb} failed more in the {usual.windows} windows before "
            f"than may be usual ({percent(usual.ceiling)})."
        )
        return Assumption("history", False, detail[:300])
    detail = (
        f"{usual.windows} windows before: {percent(usual.typical)} of the calls fail at the median of the subjects, "
        f"up to {percent(usual.ceiling)} is taken as usual."
    )
    return Assumption("history", True, detail)


def _sampling(found: Found) -> Assumption:
    if only_failures(found):
        detail = "Most observers report no good answer at all: only failures seem to be reported."
        return Assumption("sampling", False, detail)
    usual = float(found.counted.usual.min(initial=np.inf))
    missing = 0.5 / (usual + 0.5)
    return Assumption(
        "sampling",
        missing <= _MOST_HANGING,
        f"{percent(missing)} of the calls have no answer in the pairs with fewest; up to {percent(_MOST_HANGING)} is "
        "taken as complete.",
    )


def _noise(found: Found) -> Assumption:
    far, of = _far_from_usual(found)
    share = far / max(1, of)
    return Assumption(
        "noise",
        share <= _MOST_FAR,
        f"{percent(share)} of the pairs that nobody is blamed for fail far more than usual in a look-back; up to "
        f"{percent(_MOST_FAR)} is chance.",
    )


def _far_from_usual(found: Found) -> tuple[int, int]:
    """Cells and look-backs (each apart from the next) far above the usual share, of all with calls."""
    seen, usual = found.seen, found.usual
    blamed_subjects = [one.component for one in found.findings if one.nature != "observer"]
    blamed_observers = [one.component for one in found.findings if one.nature == "observer"]
    gone = list(found.restarts)
    calm = ~np.isin(seen.subject, [*blamed_subjects, *gone]) & ~np.isin(
        seen.observer, [*blamed_observers, *gone]
    )
    ends = np.arange(seen.steps - 1, -1, -found.rules.look_back)
    failed, total = found.counted.failed[calm][:, ends], found.counted.total[calm][:, ends]
    share = usual.share[calm][:, None]
    within = 1 / (usual.a[calm] + usual.b[calm] + 1)[:, None]
    variance = total * share * (1 - share) * (1 + np.maximum(0, total - 1) * within)
    # One failure alone is never far: shares of a handful of calls say nothing.
    far = (failed >= 2) & (failed - total * share > _FAR * np.sqrt(variance))
    return int(far.sum()), int((total > 0).sum())


def _witnesses(found: Found) -> Assumption:
    seen = found.seen
    pairs = np.unique(seen.subject * len(seen.components) + seen.observer)
    observers = np.bincount(pairs // max(1, len(seen.components)), minlength=len(seen.components))
    observers = observers[np.unique(seen.subject)]
    share = float(np.mean(observers >= 2)) if len(observers) else 0.0
    return Assumption(
        "witnesses",
        share >= _WITNESSED,
        f"{percent(share)} of {so_many(len(observers), 'subject')} have two observers or more; a single observer "
        "cannot be told from its subject.",
    )
