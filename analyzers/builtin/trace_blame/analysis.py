"""Blames services and instances from the spans of traces, compared with the windows before.

The parts, in the order of their work: `spans` (one table of all spans; own times and ways of calls), `missing_spans`
(calls with one side only, instances without spans), `places` (what can be compared), `load` (what load adds),
`normal` (what is normal, and the weight of a change), `logs` (the same of log records), `likelihood` (claims of
places, and how well a service explains all of them), `selection`, `replies` (who answered before calls were left
out), `symptoms`, `evidence`.

Assumptions are checked on each window. Each assumption that fails takes `DOUBT` nats off the evidence before it
becomes a probability. Where nobody is blamed and the history says too little, or somebody nearly is, the verdict is
`inconclusive` and says what would be needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from analyzers.builtin.stats.probability import wilson
from analyzers.builtin.text import percent
from analyzers.builtin.trace_blame.analyzer import KNOWN, RECENT
from analyzers.builtin.trace_blame.evidence import evidence, facts_about, sentence_of, summary
from analyzers.builtin.trace_blame.likelihood import ObservedWindow, see
from analyzers.builtin.trace_blame.load import loads
from analyzers.builtin.trace_blame.missing_spans import silent_instances, silent_table
from analyzers.builtin.trace_blame.replies import with_replies
from analyzers.builtin.trace_blame.selection import Blamed, Decision, decide, probability
from analyzers.builtin.trace_blame.symptoms import Symptoms, symptoms
from analyzers.contract import Assumption, Estimate, Params, Suspect, Verdict, Window, inconclusive, quiet

EARLIER = 1.0
"""Nats that a fault must say more where only older windows say what is normal."""

LASTING = 3
"""Windows before the judged one of which most must show what began in the history."""

FEWEST_KNOWN = 2
"""Windows that say what is normal where a fault may have begun soon after the history did; how much normal varies is
learnt from all of it.
"""


def references(windows: int) -> tuple[int, ...]:
    """Numbers of the oldest windows of a history that define normal: as many as can, and then, for a fault that
    began in the history, half of them and the first few.
    """
    known = max(min(windows, KNOWN), windows - RECENT)
    return (known, windows // 2, FEWEST_KNOWN) if windows > KNOWN else (known,)


def analyze(window: Window, params: Params) -> Verdict:
    resolution, margin = float(params["resolution_us"]), float(params["margin"])
    known, *earlier = references(len(window.history))
    seen = see(replace(window, history=window.history[:known]), resolution)
    measures = _measures(seen)
    reason = _too_little(measures, params)
    if reason is not None:
        return inconclusive(reason, measures)
    silent = silent_instances(seen.spans, seen.silence)
    measures["silent_instances"] = len(silent)
    lost = (silent_table(seen.spans, silent),) if silent else ()
    decision = decide(seen, margin, float(params["sure_margin"]))
    assumptions = checked(window, seen, decision)
    if not decision.blamed:
        lasting = _lasting(window, params, seen, earlier)
        seen, decision = lasting or (seen, decision)
        assumptions = checked(window, seen, decision)
    if not decision.blamed:
        reason = needed(seen, decision, assumptions, margin)
        none = quiet(measures, lost) if reason is None else inconclusive(reason, measures)
        return replace(none, evidence=lost, assumptions=assumptions)
    doubts = doubt(assumptions)
    decision = with_replies(seen, decision)
    shown = [(one, _component(seen, one), symptoms(seen, decision.weighed, one)) for one in decision.blamed]
    suspects = [_suspect(window, seen, decision, params, doubts, *each) for each in shown]
    order = sorted(range(len(suspects)), key=lambda row: (-(suspects[row].score or 0.0), row))
    return Verdict(
        "named",
        suspects=tuple(suspects[row] for row in order),
        measures=measures,
        evidence=(*evidence(seen, decision, [shown[row] for row in order], doubts), *lost),
        assumptions=assumptions,
    )


def _lasting(
    window: Window, params: Params, known: ObservedWindow, earlier: Sequence[int]
) -> tuple[ObservedWindow, Decision] | None:
    """Decision if only the oldest windows of the history define normal (as many as `earlier` says, one after the
    other), and most of the last windows blame the same service then; None without one.

    A fault that began in the history has become normal otherwise. `known` is what all of the history shows.
    """
    resolution = float(params["resolution_us"])
    margin = float(params["margin"]) + EARLIER
    for part in earlier:
        oldest = window.history[:part]
        seen = see(replace(window, history=oldest), resolution, known)
        if _too_little(_measures(seen), params) is not None:
            continue
        decision = decide(seen, margin, float(params["sure_margin"]), parts=1)
        if not decision.blamed:
            continue
        name, before_too = seen.spans.services[decision.blamed[0].service], 0
        for one in window.history[-LASTING:]:
            before = see(replace(one, history=oldest), resolution, known)
            blamed = decide(before, 0.0, 0.0, parts=1).blamed
            before_too += name in (before.spans.services[each.service] for each in blamed)
        if 2 * before_too > LASTING:
            return seen, decision
    return None


def _measures(seen: ObservedWindow) -> dict[str, Any]:
    spans = seen.spans
    now = spans.era == spans.eras - 1
    return {
        "spans": int(now.sum()),
        "traces": len(np.unique(spans.trace[now])),
        "services": len(np.unique(spans.service[now])),
        "instances": len(np.unique(spans.instance[now])),
        "history_spans": int((~now).sum()),
        "history_traces": len(np.unique(spans.trace[~now])),
        "lost_parents": round(seen.shapes.torn, 6),
        "unanswered_calls": int((now & seen.silence.served).sum()),
        "log_windows": len(seen.logs.logs.eras) if seen.logs else 0,
        "log_templates": len(seen.logs.logs.texts) if seen.logs else 0,
    }


def _too_little(measures: dict[str, Any], params: Params) -> str | None:
    if measures["traces"] < int(params["min_traces"]):
        return f"There are {measures['traces']} traces in this window; min_traces is {params['min_traces']}."
    if measures["history_traces"] < int(params["min_history"]):
        return (
            f"The windows before this one hold {measures['history_traces']} traces, too few for a "
            f"baseline (min_history is {params['min_history']})."
        )
    return None


def _component(seen: ObservedWindow, one: Blamed) -> str:
    if one.instance is None:
        return f"service/{seen.spans.services[one.service]}"
    return f"instance/{seen.spans.instances[one.instance]}"


def _suspect(
    window: Window,
    seen: ObservedWindow,
    decision: Decision,
    params: Params,
    doubts: float,
    one: Blamed,
    component: str,
    signs: Symptoms,
) -> Suspect:
    facts = facts_about(seen, decision.weighed, one)
    return Suspect(
        component=component,
        score=probability(one.odds - doubts),
        summary=summary(facts, component) + _alike(seen, one),
        estimate=_estimate(signs),
        ambiguous_with=_coinciding(seen, one),
        sure=one.odds - doubts >= float(params["sure_margin"]),
        first_failure=_moment(signs.first, window),
        last_failure=_moment(signs.last, window),
        phrase=sentence_of(facts),
    )


def _alike(seen: ObservedWindow, one: Blamed) -> str:
    """The end of a summary of a service that cannot be told from one that calls it, or that it calls."""
    if one.alike is None:
        return ""
    calls = bool(seen.reach[one.service, one.alike])
    caller, called = (one.service, one.alike) if calls else (one.alike, one.service)
    names = seen.spans.services
    return (
        f" Either {names[called]} answers otherwise, or {names[caller]} leaves out calls of its own accord."
    )


def _coinciding(seen: ObservedWindow, one: Blamed) -> tuple[str, ...]:
    """The only instance of a service coincides with it: nothing tells a bad pod from a bad program. So does a service
    whose changed replies would look the same, or that would look the same with its own.
    """
    alone = _only_instance(seen, one.service) if one.instance is None else ()
    if one.alike is None:
        return alone
    alike = (f"service/{seen.spans.services[one.alike]}", *_only_instance(seen, one.alike))
    return tuple(sorted((*alone, *alike)))


def _only_instance(seen: ObservedWindow, service: int) -> tuple[str, ...]:
    spans = seen.spans
    mine = (spans.era == spans.eras - 1) & (spans.service == service)
    instances = np.unique(spans.instance[mine]).tolist()
    return (f"instance/{spans.instances[instances[0]]}",) if len(instances) == 1 else ()


def _estimate(signs: Symptoms) -> Estimate | None:
    """The share of traces through the component that show the fault (Wilson 1927)."""
    if not signs.hit:
        return None
    return Estimate(signs.hit / signs.passed, *wilson(signs.hit, signs.passed))


def _moment(microseconds: int | None, window: Window) -> datetime | None:
    if microseconds is None:
        return None
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    return min(max(when, window.start), window.end)


DOUBT = 2.0
"""Nats that an assumption is worth that fails."""

KNOWN_SHARE = 0.8
"""Least share of the window's spans whose operations the history holds often enough."""

OFTEN = 10
"""Spans of an operation in the history from which on it is known."""

WINDOWS = 3
"""Windows of the history from which on it shows how normal varies."""

VARIED = 0.02
"""Largest share of places and windows of the history that surprise the other windows."""

MORE = 1.25
"""Largest factor between what is asked of a slow suspect and the most that was in any window of the history."""

_SLOWNESS = frozenset({"own time", "on the way", "reported by callers only"})
"""Kinds of change that load may cause."""

RATE = 4.0
"""Largest factor between the traces a second now and before."""

TORN = 0.05
"""Largest share of parents that are missing."""

OUTLASTED = 0.1
"""Largest share of spans that outlast a parent of the same instance, by whose clock no call ends before its parts."""

NEAR = 2.0
"""Nats below the margin from which on somebody is nearly blamed."""


def checked(window: Window, seen: ObservedWindow, decision: Decision) -> tuple[Assumption, ...]:
    return (_history(seen), _sampling(window, seen), _noise(seen, decision), _topology(seen))


def doubt(assumptions: tuple[Assumption, ...]) -> float:
    """Nats that the failed ones take off the evidence."""
    return DOUBT * sum(not one.holds for one in assumptions)


def _history(seen: ObservedWindow) -> Assumption:
    spans, now = seen.spans, seen.spans.era == seen.spans.eras - 1
    before = np.bincount(spans.operation[~now], minlength=len(spans.operations))
    known = float((before[spans.operation[now]] >= OFTEN).mean()) if now.any() else 0.0
    detail = (
        f"{percent(known)} of the spans are of operations that the windows before hold {OFTEN} times or more."
    )
    return Assumption("history", known >= KNOWN_SHARE, detail)


def _sampling(window: Window, seen: ObservedWindow) -> Assumption:
    spans, torn = seen.spans, seen.shapes.torn
    seconds = [max(1.0, one.length.total_seconds()) for one in (*window.history, window)]
    rates = [len(np.unique(spans.trace[spans.era == era])) / seconds[era] for era in range(spans.eras)]
    before = [rate for rate in rates[:-1] if rate > 0]
    ratio = rates[-1] / float(np.median(before)) if before else 0.0
    detail = (
        f"There are {ratio:.2g} times the traces a second of the windows before; "
        f"{percent(torn)} of the parents named are missing."
    )
    return Assumption("sampling", 1 / RATE <= ratio <= RATE and torn <= TORN, detail)


def _noise(seen: ObservedWindow, decision: Decision) -> Assumption:
    windows = len(np.unique(seen.spans.era)) - 1
    share = max(seen.own_normal.surprising, seen.way_normal.surprising, seen.habits.surprising)
    shift = max(decision.weighed.own_common, decision.weighed.way_common)
    if windows < WINDOWS:
        few = "window" if windows == 1 else "windows"
        detail = f"{windows} {few} of history do not show how normal varies; {WINDOWS} do."
        return Assumption("noise", False, detail)
    detail = (
        f"{percent(share)} of what the windows before show surprises the other ones; everything takes "
        f"{np.exp(shift):.2g} times as long as before."
    )
    more, name = _most_load(seen, decision)
    if more > MORE:
        detail += f" service/{name} is slow and asked for {more:.2g} times as often as in any window before."
    return Assumption("noise", share <= VARIED and shift < 0.7 and more <= MORE, detail)


def _most_load(seen: ObservedWindow, decision: Decision) -> tuple[float, str]:
    """Largest load, as a multiple of that in any window of the history, on one of the blamed that stands out by its
    times, and the name of its service: how long it then takes is not known from the history.
    """
    load, most = loads(seen.spans), (0.0, "")
    for one in decision.blamed:
        facts = facts_about(seen, decision.weighed, one)
        if facts and facts[0].kind in _SLOWNESS:
            beyond = float(np.exp(load[one.service, -1] - load[one.service, :-1].max()))
            most = max(most, (beyond, seen.spans.services[one.service]))
    return most


def _topology(seen: ObservedWindow) -> Assumption:
    spans = seen.spans
    child = np.flatnonzero((spans.parent >= 0) & (spans.era == spans.eras - 1))
    parent = spans.parent[child]
    outlasts = (spans.end[child] > spans.end[parent] + seen.resolution_us) & (
        spans.start[child] < spans.end[parent]
    )
    same = outlasts[spans.instance[child] == spans.instance[parent]]
    share = float(same.mean()) if len(same) else 0.0
    detail = f"{percent(share)} of the spans outlast a parent of the same instance."
    return Assumption("topology", not share > OUTLASTED, detail)


def needed(
    seen: ObservedWindow, decision: Decision, assumptions: tuple[Assumption, ...], margin: float
) -> str | None:
    """Reason why a window in which nobody is blamed decides nothing, and the missing data; None where it does."""
    history = assumptions[0]
    if not history.holds:
        return f"Normal is not known: {history.detail} Needed: more windows, or longer ones."
    lead = float(decision.odds.max(initial=-np.inf))
    if lead < margin - NEAR:
        return _too_short(seen)
    name = seen.spans.services[int(np.argmax(decision.odds))]
    logs = "more traces" if seen.logs else "counts of its log records (kind log_count), or more traces"
    return (
        f"service/{name} explains best what changed, with {lead:.1f} nats of evidence where {margin:g} are needed. "
        f"Needed: {logs}."
    )


def _too_short(seen: ObservedWindow) -> str | None:
    """Reason why that nobody stands out decides nothing: a short history hides all but large changes."""
    windows = len(np.unique(seen.spans.era)) - 1
    if windows >= WINDOWS:
        return None
    logs = (
        "" if seen.logs else ", and counts of log records (kind log_count): spans alone rarely show those two"
    )
    return (
        f"Nobody stands out beside {windows} window{'' if windows == 1 else 's'} of history, which would hide a small "
        f"slowdown, an exception or a changed return. Needed: {WINDOWS} windows of history{logs}."
    )
