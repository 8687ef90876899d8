"""Blames services and instances from the spans of traces, compared with the windows before.

The parts, in the order of their work: `spans` (one table of all spans), `timing` (own times and ways of calls),
`silence` (calls whose other side is missing), `places` (what can be compared), `normal` (what is normal, and the weight
of a change), `logs`, `log_changes` and `log_signs` (the same of log records), `weighing` (whose claim it is), `blame`
(how well a service explains all of it), `deciding`, `assumptions`, `symptoms`, `silent` (whose spans stopped arriving),
`showing`, `saying`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from analyzers.builtin.stats.wilson import wilson
from analyzers.builtin.trace_blame.analyzer import KNOWN
from analyzers.builtin.trace_blame.assumptions import checked, doubt, needed
from analyzers.builtin.trace_blame.calibration import probability
from analyzers.builtin.trace_blame.evidence import evidence, facts_about
from analyzers.builtin.trace_blame.likelihood import ObservedWindow, see
from analyzers.builtin.trace_blame.selection import Blamed, Decision, decide
from analyzers.builtin.trace_blame.sentences import says, summary
from analyzers.builtin.trace_blame.silent_instances import silent_instances, silent_table
from analyzers.builtin.trace_blame.symptoms import Symptoms, symptoms
from analyzers.contract import (
    Estimate,
    Params,
    Suspect,
    Verdict,
    Window,
    inconclusive,
    quiet,
)


def analyze(window: Window, params: Params) -> Verdict:
    seen = see(replace(window, history=window.history[:KNOWN]), float(params["resolution_us"]))
    measures = _measures(seen)
    reason = _too_little(measures, params)
    if reason is not None:
        return inconclusive(reason, measures)
    silent = silent_instances(seen.spans, seen.silence)
    measures["silent_instances"] = len(silent)
    lost = (silent_table(seen.spans, silent),) if silent else ()
    decision = decide(seen, float(params["margin"]), float(params["sure_margin"]))
    assumptions = checked(window, seen, decision)
    if not decision.blamed:
        reason = needed(seen, decision, assumptions, float(params["margin"]))
        none = quiet(measures, lost) if reason is None else inconclusive(reason, measures)
        return replace(none, evidence=lost, assumptions=assumptions)
    doubts = doubt(assumptions)
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
            f"The windows before this one hold {measures['history_traces']} traces: nothing says what is "
            f"normal (min_history is {params['min_history']})."
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
        summary=summary(facts, component),
        estimate=_estimate(signs),
        ambiguous_with=_coinciding(seen, one),
        sure=one.odds - doubts >= float(params["sure_margin"]),
        first_failure=_moment(signs.first, window),
        last_failure=_moment(signs.last, window),
        says=says(facts),
    )


def _coinciding(seen: ObservedWindow, one: Blamed) -> tuple[str, ...]:
    """The only instance of a service coincides with it: nothing tells a bad pod from a bad program."""
    if one.instance is not None:
        return ()
    spans = seen.spans
    mine = (spans.era == spans.eras - 1) & (spans.service == one.service)
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
