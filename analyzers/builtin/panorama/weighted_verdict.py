"""The weighted method's verdict: suspects and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from analyzers.builtin.panorama import assumptions, evidence
from analyzers.builtin.panorama.calibration import probability
from analyzers.builtin.panorama.findings import Finding, Found
from analyzers.builtin.panorama.reductions import SLICE
from analyzers.builtin.stats.probability import wilson
from analyzers.builtin.text import listed, moment, percent
from analyzers.contract import Estimate, Suspect, Verdict, Window, quiet

_CROWD = 0.6
"""Share of observers that would have to be unreliable above which nobody can be believed."""

SURE = 0.97

LEAST_STATED = 0.4
"""Probability below which a culprit is not named."""


def verdict_of(window: Window, found: Found, measures: Mapping[str, Any]) -> Verdict:
    found = replace(found, assumptions=assumptions.checked(found))
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
    return assumptions.lowered(found, one, probability(one.surplus + found.rules.margin))


def _undecided(found: Found, doubtful: Sequence[Finding]) -> str | None:
    """Why nobody can be named, if so; `doubtful` are findings of a probability too low to name them."""
    if found.findings and assumptions.only_failures(found):
        return (
            "Most observers report no good answer, now or before: either everything fails or only failures are "
            "reported. Report good answers too."
        )
    if found.findings and found.crowd > _CROWD:
        return (
            f"{percent(found.crowd)} of the observers complain about everyone they observe: whether they or what they "
            "share (a network, a dependency) is at fault cannot be told from what they see."
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
    told: set[int] = set()
    for one in found.findings:
        if one.component not in told:
            out.append(_suspect(window, found, one))
            told |= {one.component}
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
        says=summary_of(one),
    )


def when(window: Window, found: Found, one: Finding) -> tuple[datetime, datetime]:
    """The start of the first slice in which it failed, and the end of the last."""
    step = found.seen.fold * SLICE
    return window.start + one.first * step, min(window.end, window.start + (one.last + 1) * step)


def summary_of(one: Finding) -> str:
    """What is wrong, as the end of a title that begins with the component."""
    share = percent(one.main.failed / max(1, one.main.total))
    if one.nature == "gray":
        return f"is a gray failure: {share} of its callers' requests fail while probes find it healthy"
    if one.nature == "observer":
        return f"complains about {one.witnesses} of {one.asked} others that are found healthy"
    return f"fails {share} of its callers' requests"


def sentence(window: Window, found: Found, one: Finding) -> str:
    name = found.seen.components[one.component]
    first, last = when(window, found, one)
    since = f"since {moment(first)}" if one.ongoing else f"from {moment(first)} to {moment(last)}"
    share = percent(one.main.failed / max(1, one.main.total))
    if one.nature == "observer":
        said = (
            f"{name} complains about {one.witnesses} of the {one.asked} subjects it observes ({share} of its "
            f"observations, {since}) while others find them healthy: the fault lies with it or with its way to them"
        )
    else:
        where = (
            "all contexts" if one.everywhere else listed(tuple(found.seen.contexts[c] for c in one.contexts))
        )
        voices = f"{one.witnesses} of {one.asked} observers"
        if one.nature == "gray":
            said = (
                f"{name} is a gray failure: {voices} see {share} of their requests to it fail ({where}, {since}) while "
                "probes find it healthy"
            )
        else:
            said = f"{name} fails: {voices} see {share} of their requests to it fail ({where}, {since})"
    if one.rivals:
        others = tuple(sorted(found.seen.components[other] for other in one.rivals))
        return f"{said}. It may as well be {listed(others)}: the observations cannot tell them apart."
    return f"{said}."
