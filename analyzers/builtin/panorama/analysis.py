"""Panorama (Huang et al., OSDI 2018): what processes see of each other, and gray failures in between.

One window is judged by the weighted method, whose verdict is here, or as published (`published`). Assumptions are
checked on each window; a probability is lowered where one does not hold.

`SCORES` gives the probability that a culprit is at fault, from its evidence, where all assumptions hold. Two
calibrations on tuning seeds (below `FIRST_REPORTING_SEED`), each with the bar lowered so that doubtful culprits are
seen too: `python -m tests.benchmarks.panorama --calibrate --trials 96` (systems of 10 to 50 processes of which next
to no healthy call fails) gives .78 at .75 nats and .99 at 2.25; systems whose healthy calls fail at shares that
differ by subject, pair and hour give .0 up to 3 nats, .6 from 5 to 8, and .97 above. The pairs lie between the two:
where noise is as learnt they understate, and `lowered` takes off what they would overstate where it is not. Each pair
is evidence over the threshold at margin 0, in nats, and a probability; between the pairs the log-odds are
interpolated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np

from analyzers.builtin.panorama import evidence, published
from analyzers.builtin.panorama.analyzer import SLICE
from analyzers.builtin.panorama.findings import Finding, Found, find
from analyzers.builtin.panorama.observed import ENOUGH_WINDOWS, Observed, observe
from analyzers.builtin.stats.probability import probability_at, wilson
from analyzers.builtin.text import listed, moment, percent, so_many
from analyzers.contract import Assumption, Estimate, Params, Suspect, Verdict, Window, inconclusive, quiet


def analyze(window: Window, params: Params) -> Verdict:
    seen = observe(window)
    measures = measures_of(seen)
    if not seen.cells:
        return inconclusive("There are no observations in this window.", measures)
    if params["method"] == "paper":
        return published.verdict_of(window, seen, params, measures)
    return verdict_of(window, find(seen, window.history, params), measures)


def measures_of(seen: Observed) -> dict[str, int]:
    return {
        "observers": len(set(seen.observer.tolist())),
        "subjects": len(set(seen.subject.tolist())),
        "contexts": len(seen.contexts),
        "cells": seen.cells,
        "observations": int(seen.healthy.sum() + seen.unhealthy.sum() + seen.pending.sum()),
        "unhealthy": int(seen.unhealthy.sum()),
    }


_CROWD = 0.6
"""Share of observers that would have to be unreliable above which nobody can be believed."""

SURE = 0.97

LEAST_STATED = 0.4
"""Probability below which a culprit is not named."""


def verdict_of(window: Window, found: Found, measures: Mapping[str, Any]) -> Verdict:
    found = replace(found, assumptions=checked(found))
    doubtful = tuple(one for one in found.findings if _stated(found, one) < LEAST_STATED)
    found = replace(found, findings=tuple(one for one in found.findings if one not in doubtful))
    figures = {
        **measures,
        "unreliable_observers": sum(one.nature == "observer" for one in found.findings),
        "gray": sum(one.nature == "gray" for one in found.findings),
        "passing": len(found.passing),
        "restarts": len(found.restarts),
        "doubtful": len(doubtful),
        "usual_failed": round(found.usual.typical, 6),
        "past_windows": found.usual.windows,
    }
    shown = evidence.pieces(window, found)
    reason = _undecided(found, doubtful)
    if reason is not None:
        return Verdict("inconclusive", (), reason, figures, shown, found.assumptions)
    if not found.findings:
        return quiet(figures, shown, found.assumptions)
    return Verdict("named", suspects_of(window, found), None, figures, shown, found.assumptions)


def _stated(found: Found, one: Finding) -> float:
    return lowered(found, one, probability(one.surplus + found.rules.margin))


def _undecided(found: Found, doubtful: Sequence[Finding]) -> str | None:
    """Reason why nobody can be named, if so; `doubtful` are findings of a probability too low to name them."""
    if found.findings and only_failures(found):
        return (
            "Most observers report no good answer, now or before: either everything fails or only failures are "
            "reported. Report good answers too."
        )
    if found.findings and found.crowd > _CROWD:
        return (
            f"{percent(found.crowd)} of the observers complain about every subject: their observations do not "
            "separate a fault of the observers from one of what they share (a network, a dependency)."
        )
    if not found.findings and found.partition is not None:
        sides = " and ".join(str(one) for one in found.partition.sizes)
        return (
            f"The observers fall into sides of {sides} components that reach each other and not across: the network "
            "between them is cut, or something on it; no component that was observed explains it."
        )
    gone = [(one, stop.steps) for one, stop in found.restarts.items() if stop.still]
    gone = [(one, steps) for one, steps in gone if steps > found.rules.look_back]
    if not found.findings and gone:
        step = found.seen.fold * SLICE.total_seconds()
        names = listed(tuple(sorted(found.seen.components[one] for one, _ in gone))).replace(" or ", " and ")
        longest = max(steps for _, steps in gone) * step
        return (
            f"{names} {'has' if len(gone) == 1 else 'have'} been gone for {longest:g} s: a restart, which may take "
            f"{found.rules.restart * step:g} s, or a failure. The next window tells."
        )
    unmet = [one.detail for one in found.assumptions if not one.holds]
    if not found.findings and doubtful and unmet:
        maybe = tuple(found.seen.components[one.component] for one in doubtful)
        return f"{listed(maybe)} may fail, but the probability is below {percent(LEAST_STATED)}. {' '.join(unmet)}"
    return None


def suspects_of(window: Window, found: Found) -> tuple[Suspect, ...]:
    """Best first; components that explain the same share the entry of the first."""
    out: list[Suspect] = []
    reported: set[int] = set()
    for one in found.findings:
        if one.component not in reported:
            out.append(_suspect(window, found, one))
            reported |= {one.component}
    return tuple(sorted(out, key=lambda one: -(one.score or 0)))


def _suspect(window: Window, found: Found, one: Finding) -> Suspect:
    score = _stated(found, one)
    named = found.seen.components
    main = one.main
    low, high = wilson(main.failed, max(1, main.total))
    first, last = when(window, found, one)
    return Suspect(
        component=named[one.component],
        score=score,
        summary=sentence(window, found, one),
        estimate=Estimate(main.failed / max(1, main.total), low, high),
        ambiguous_with=tuple(sorted(named[other] for other in one.rivals)),
        sure=score >= SURE and one.last - one.first + 1 >= found.rules.sure and not one.rivals,
        first_failure=first,
        last_failure=last,
        phrase=summary_of(one),
    )


def when(window: Window, found: Found, one: Finding) -> tuple[datetime, datetime]:
    """The start of the first slice in which it failed, and the end of the last."""
    step = found.seen.fold * SLICE
    return window.start + one.first * step, min(window.end, window.start + (one.last + 1) * step)


def summary_of(one: Finding) -> str:
    """Fault, as the end of a title that begins with the component."""
    share = percent(one.main.failed / max(1, one.main.total))
    if one.nature == "gray":
        return f"is a gray failure: {share} of its callers' requests fail while probes find it healthy"
    if one.nature == "observer":
        return f"complains about {one.witnesses} of {one.others} others that are found healthy"
    return f"fails {share} of its callers' requests"


def sentence(window: Window, found: Found, one: Finding) -> str:
    name = found.seen.components[one.component]
    first, last = when(window, found, one)
    since = f"since {moment(first)}" if one.ongoing else f"from {moment(first)} to {moment(last)}"
    share = percent(one.main.failed / max(1, one.main.total))
    if one.nature == "observer":
        sentence = (
            f"{name} complains about {one.witnesses} of the {one.others} subjects it observes ({share} of its "
            f"observations, {since}) while others find them healthy: the fault lies with it or with its way to them"
        )
    else:
        where = (
            "all contexts" if one.everywhere else listed(tuple(found.seen.contexts[c] for c in one.contexts))
        )
        voices = f"{one.witnesses} of {one.others} observers"
        if one.nature == "gray":
            sentence = (
                f"{name} is a gray failure: {voices} see {share} of their requests to it fail ({where}, {since}) while "
                "probes find it healthy"
            )
        else:
            sentence = f"{name} fails: {voices} see {share} of their requests to it fail ({where}, {since})"
    if one.rivals:
        others = tuple(sorted(found.seen.components[other] for other in one.rivals))
        return f"{sentence}. The observations do not separate it from {listed(others)}."
    return f"{sentence}."


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

_LOWERED = {"history": 0.5, "sampling": 1.0, "noise": 2.0, "witnesses": 0.0}
"""Nats that a probability's odds lose where an assumption does not hold."""
_CHRONIC = 0.5
"""The same for a component that has failed so in all of the history, beside what the history loses by it: it may be
what is usual there."""
_ALONE = 1.0
"""The same for a component with one observer."""


def checked(found: Found) -> tuple[Assumption, ...]:
    return (_history(found), _sampling(found), _noise(found), _witnesses(found))


def lowered(found: Found, one: Finding, probability: float) -> float:
    """The probability of a finding after what it loses to assumptions that do not hold."""
    lost = sum(_LOWERED[each.name] for each in found.assumptions if not each.holds)
    if one.component in chronic(found):
        lost += _CHRONIC
    if one.others == 1:
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
    observers = np.unique(seen.observer)
    well = np.bincount(seen.observer, good, minlength=len(seen.components))[observers]
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
        f"{percent(share)} of the pairs without a blamed component fail far more than usual in a look-back; up to "
        f"{percent(_MOST_FAR)} is chance.",
    )


def _far_from_usual(found: Found) -> tuple[int, int]:
    """Cells and look-backs (each apart from the next) far above the usual share, of all with calls."""
    seen, usual = found.seen, found.usual
    blamed_subjects = [one.component for one in found.findings if one.nature != "observer"]
    blamed_observers = [one.component for one in found.findings if one.nature == "observer"]
    gone = list(found.restarts)
    unblamed = ~np.isin(seen.subject, [*blamed_subjects, *gone]) & ~np.isin(
        seen.observer, [*blamed_observers, *gone]
    )
    ends = np.arange(seen.steps - 1, -1, -found.rules.look_back)
    failed, total = found.counted.failed[unblamed][:, ends], found.counted.total[unblamed][:, ends]
    share = usual.share[unblamed][:, None]
    within = 1 / (usual.a[unblamed] + usual.b[unblamed] + 1)[:, None]
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
        "cannot be separated from its subject.",
    )


SCORES: tuple[tuple[float, float], ...] = (
    (-1.5, 0.1),
    (-0.5, 0.2),
    (0.75, 0.55),
    (2.25, 0.88),
    (5.0, 0.95),
    (9.0, 0.98),
    (18.5, 0.99),
)


def probability(surplus: float) -> float:
    """The probability that a culprit is at fault, given its evidence above the threshold in nats."""
    return probability_at(SCORES, surplus)
