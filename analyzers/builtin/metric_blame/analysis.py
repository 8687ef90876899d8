"""The verdict on one window of metrics, with its assumptions; a probability is lowered where one does not hold.

- `history`: windows before show how each series usually is.
- `sampling`: four in five of the readings that series usually have are there.
- `topology`: the calls of most changed components are known.
- `load`: all are asked as much as before, or less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from analyzers.builtin.metric_blame import evidence as show
from analyzers.builtin.metric_blame.blame import LEAST, Candidate, Component, Outcome, judge, path_of
from analyzers.builtin.metric_blame.calibration import probability
from analyzers.builtin.metric_blame.change import Change, Changes, changes, onset
from analyzers.builtin.metric_blame.indicators import is_share_of_processor
from analyzers.builtin.metric_blame.series import Observed, observe
from analyzers.builtin.text import count, figure, moment, percent, so_many
from analyzers.contract import Assumption, Params, Suspect, Verdict, Window, inconclusive, quiet

SURE = 0.9
LEAST_SCORE = 0.3
"""Below that no component is named: too many are as likely."""
SATURATED = 80.0
"""Per cent of its limit from which on a processor is saturated, if it used at most half of that before."""
UNNOTICED = 0.0
"""Log-odds of a saturated component that no caller notices, before calibration."""
_ALIKE = 0.7
"""Nats below the first in which another component is not told apart from it."""
_MOST_ALIKE = 5
"""Components beside the first that an entry may have; more are no place to look at."""
_PRESENT = 0.8
_SURGE = 1.5
_LOWERED = {"history": 0.5, "sampling": 0.5, "topology": 0.0, "load": 1.0}
"""Nats that the odds of a probability lose where an assumption does not hold."""


def analyze(window: Window, params: Params) -> Verdict:
    seen = observe(window, params)
    if not seen.series:
        return inconclusive(_nothing(seen), _measures(seen, None, None))
    found = changes(seen, seen.columns(float(params["persist_seconds"])), int(params["min_history"]))
    if not found.judged:
        return inconclusive(_no_history(seen, params), _measures(seen, found, None))
    outcome = judge(seen, found)
    assumptions = _checked(seen, found, outcome)
    figures = _measures(seen, found, outcome)
    shown = show.pieces(seen, found, outcome)
    least = float(params["min_evidence"])
    symptom = outcome.symptom
    notable = [one for one in outcome.components.values() if max(one.external, one.internal) >= least]
    if symptom is None or not notable:
        return quiet(figures, shown, assumptions)
    external = any(one.external for one in found.found)
    lost = sum(_LOWERED[one.name] for one in assumptions if not one.holds)
    if external and symptom.external < least and not _noticed(seen, found, outcome, least):
        saturated = _saturated(seen, outcome, least, score_of(UNNOTICED, lost))
        if saturated is not None:
            return Verdict("named", (saturated,), None, figures, shown, assumptions)
        reason = _unnoticed(notable[0].name, notable[0].changes[0])
        return Verdict("inconclusive", (), reason, figures, shown, assumptions)
    against_chance = max(max(one.external, one.internal) for one in notable)
    first = outcome.candidates[0]
    score = score_of(evidence_of(outcome, against_chance), lost)
    if score < LEAST_SCORE:
        reason = _undecided(seen, found, outcome)
        return Verdict("inconclusive", (), reason, figures, shown, assumptions)
    alike = tuple(sorted({*_alike(outcome), *awaited(seen, first.component)}))
    if len(alike) > _MOST_ALIKE:
        reason = _waits(first.component, len(seen.calls[first.component.name]))
        return Verdict("inconclusive", (), reason, figures, shown, assumptions)
    suspect = _suspect(seen, outcome, first, score, alike)
    return Verdict("named", (suspect,), None, figures, shown, assumptions)


def _noticed(seen: Observed, found: Changes, outcome: Outcome, least: float) -> bool:
    """Whether callers of the first candidate notice a clear change of its own resources.

    Evidence of a symptom counts all judged series as chances. Where resources of one component changed clearly, only
    what its callers see counts, its own external series and those of its callers: as many chances fewer.
    """
    first = outcome.candidates[0].component
    if first.internal < least:
        return False
    near = {first.name, *(name for name, called in seen.calls.items() if first.name in called)}
    external = [one for one in found.found if one.external and one.identity.component in near]
    noticed = max((one.nats for one in external), default=0.0)
    return noticed >= LEAST and noticed + math.log(found.judged / max(len(external), 1)) >= least


def _saturated(seen: Observed, outcome: Outcome, least: float, score: float) -> Suspect | None:
    """The component that serves requests and whose own processor became saturated; those of several are not told
    apart. A queue at four fifths of its capacity takes five times its service time (M/M/1), whether that is measured or
    not; what uses less may be at work."""
    found = []
    for one in outcome.candidates:
        serves = any(each.external or each.identity.sort == "load" for each in one.component.changes)
        busy = [each for each in one.component.changes if each.nats >= least and _is_saturation(each)]
        if serves and busy:
            found.append((one.component, busy[0]))
    if not 0 < len(found) <= _MOST_ALIKE or score < LEAST_SCORE:
        return None
    component, change = found[0]
    alike = tuple(sorted(one.name for one, _ in found[1:]))
    phrase = f"{_sentence(change, ())}: its processor is saturated, and no component is slower or fails more"
    return _of_change(seen, component, change, phrase, score, alike, ())


def _is_saturation(one: Change) -> bool:
    busy = is_share_of_processor(one.identity.name, one.before, one.value)
    return busy and one.value >= SATURATED and one.before <= SATURATED / 2


def evidence_of(outcome: Outcome, against_chance: float) -> float:
    """Log-odds of the first candidate against all others, at most the evidence that anything changed."""
    share = outcome.candidates[0].share
    return min(math.log(share / max(1 - share, 1e-6)), against_chance)


def score_of(evidence: float, lost: float) -> float:
    stated = probability(evidence)
    return 1 / (1 + math.exp(lost - math.log(stated / (1 - stated)))) if lost else stated


def _nothing(seen: Observed) -> str:
    if not seen.unnamed:
        return "There are no metrics in this window."
    return (
        f"None of {so_many(seen.unnamed, 'series')} has a label that names a component: labels that do are listed in "
        "the documentation, and the parameter `component_label` names another."
    )


def _no_history(seen: Observed, params: Params) -> str:
    minutes = seen.now * seen.width.total_seconds() / 60
    return (
        f"No series has {params['min_history']} readings before this window ({count(round(minutes))} minutes of "
        "history are known): what is usual is not known."
    )


def _unnoticed(name: str, change: Change) -> str:
    return (
        f"{change.identity.shown} of {name} changed from {figure(change.before)} to {figure(change.value)}, and no "
        "component is slower or fails more than usual: it may be at work."
    )


def _undecided(seen: Observed, found: Changes, outcome: Outcome) -> str:
    since = moment(seen.starts[min(one.component.onset for one in outcome.candidates[:3])])
    names = ", ".join(one.component.name for one in outcome.candidates[:3])
    if found.surge > _SURGE:
        return f"Load is {found.surge:.1f} times what it was, and no component stands out; most likely are {names}."
    return f"Metrics changed since {since}, and no component stands out; most likely are {names}."


def awaited(seen: Observed, one: Component) -> frozenset[str]:
    """Components that this one may wait for, which it calls, where it is slower and its own resources are measured and
    as usual. What answers slowly on the way is seen by the caller alone."""
    resources = any(each.identity.sort == "internal" for each in one.changes)
    slower = next((each.identity.sort == "latency" for each in one.changes if each.external), False)
    if not (resources and slower) or one.internal >= LEAST:
        return frozenset()
    return seen.calls.get(one.name, frozenset())


def _waits(one: Component, called: int) -> str:
    change = next(each for each in one.changes if each.external)
    return (
        f"{change.identity.shown} of {one.name} changed from {figure(change.before)} to {figure(change.value)}, its "
        f"own resources are as usual, and it calls {so_many(called, 'component')}: it may wait for any of them."
    )


def _measures(seen: Observed, found: Changes | None, outcome: Outcome | None) -> dict[str, Any]:
    return {
        "components": len({one.component for one in seen.series}),
        "series": len(seen.series),
        "judged": found.judged if found else 0,
        "calls": sum(len(one) for one in seen.calls.values()),
        "changed": len(outcome.candidates) if outcome else 0,
        "load": round(found.surge, 2) if found else 1.0,
    }


def _checked(seen: Observed, found: Changes, outcome: Outcome) -> tuple[Assumption, ...]:
    minutes = seen.now * seen.width.total_seconds() / 60
    columns = len(seen.starts) - seen.now
    enough = seen.now >= 2 * columns
    history = Assumption("history", enough, f"{count(round(minutes))} minutes before this window are known.")
    before = np.isfinite(seen.values[:, : seen.now]).mean() if seen.now else 0.0
    here = np.isfinite(seen.values[:, seen.now :]).mean()
    share = min(1.0, float(here / before)) if before else 1.0
    sampling = Assumption(
        "sampling", share >= _PRESENT, f"{percent(share)} of the readings that series usually have are there."
    )
    placed = {*seen.calls, *(one for needed in seen.calls.values() for one in needed)}
    changed = [one.component.name for one in outcome.candidates]
    known = sum(name in placed for name in changed)
    topology = Assumption(
        "topology",
        2 * known >= len(changed) and (bool(seen.calls) or not changed),
        f"Calls are known of {count(known)} of {so_many(len(changed), 'changed component')}.",
    )
    load = Assumption("load", found.surge <= _SURGE, f"Load is {found.surge:.2f} times what it was before.")
    return history, load, sampling, topology


def _alike(outcome: Outcome) -> tuple[str, ...]:
    first = outcome.candidates[0]
    near = [one for one in outcome.candidates[1:] if first.weight - one.weight < _ALIKE]
    return tuple(sorted(one.component.name for one in near[:_MOST_ALIKE]))


def _suspect(
    seen: Observed, outcome: Outcome, one: Candidate, score: float, alike: tuple[str, ...]
) -> Suspect:
    change = indicator_of(one.component.changes)
    path = path_of(outcome, one, seen)
    phrase = _sentence(change, path)
    if awaited(seen, one.component):
        phrase += "; its own resources are as usual, so that it may wait for what it calls"
    return _of_change(seen, one.component, change, phrase, score, alike, path)


def _of_change(
    seen: Observed,
    one: Component,
    change: Change,
    phrase: str,
    score: float,
    alike: tuple[str, ...],
    path: tuple[str, ...],
) -> Suspect:
    clearest = one.changes[0]
    low, median, high = onset(seen, clearest)
    since = seen.starts[median]
    span = f" (95 % between {seen.starts[low]:%H:%M:%S} and {seen.until(high):%H:%M:%S})"
    return Suspect(
        component=one.name,
        score=score,
        summary=f"{one.name} {phrase} since {moment(since)}{span}.",
        ambiguous_with=alike,
        sure=score >= SURE,
        first_failure=since,
        last_failure=seen.until(clearest.last - 1),
        phrase=phrase[:200],
        indicator=change.identity.shown[:100],
        path=path,
    )


def indicator_of(found: Sequence[Change]) -> Change:
    """The change that shows the fault: the clearest of its own resources if there is a clear one, else the first."""
    internal = [one for one in found if one.identity.sort == "internal"]
    clear = [one for one in internal if one.nats >= 0.5 * found[0].nats and one.nats > 1]
    return clear[0] if clear else found[0]


def _sentence(change: Change, path: tuple[str, ...]) -> str:
    before, value = change.before, change.value
    name = change.identity.shown
    if change.identity.sort == "availability":
        name = f"missing {name}"
    passed = f", which {path[-1]} shows" if path else ""
    return f"changed {name} from {figure(before)} to {figure(value)}{passed}"
