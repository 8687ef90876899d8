"""Evidence of a verdict: changes at the blamed beside the cleared, examples, and their sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analyzers.builtin.text import NATS, percent
from analyzers.builtin.trace_blame.likelihood import ObservedWindow, Weighed, at_instance
from analyzers.builtin.trace_blame.selection import Blamed, Decision, probability
from analyzers.builtin.trace_blame.symptoms import Symptoms
from analyzers.contract import Evidence, chart, table, text

Json = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

_MOST_FACTS = 8
_MOST_BARS = 10
_RUNNERS_UP = 3

_KINDS = {"own": "own time", "way": "on the way", "call": "reported by callers only"}


@dataclass(frozen=True, slots=True)
class Fact:
    """Observation at one place of a service: `normal` and `now` are mean milliseconds of own times and ways, shares
    of spans with outcomes gained for what spans do; `support` the nats for a fault; `failed` the share of those with
    an outcome that was never seen that ended in an error. Of log records, `what` is the template, `normal` how many
    were expected and `now` how many came.
    """

    kind: str
    what: str
    before: int
    spans: int
    normal: float | None
    now: float
    support: float
    failed: float = 0.0


def facts_about(seen: ObservedWindow, weighed: Weighed, one: Blamed) -> list[Fact]:
    """Observations at the blamed service, or at the blamed instance alone."""
    mine = weighed if one.instance is None else at_instance(seen, weighed, one.instance)
    return facts_of(seen, mine, one.service)


def facts_of(seen: ObservedWindow, weighed: Weighed, service: int) -> list[Fact]:
    """Everything seen at the places of a service, what speaks most for a fault first."""
    found = [
        *_time_facts(seen, weighed, service),
        *_shape_facts(seen, weighed, service),
        *_log_facts(weighed, service),
    ]
    return sorted(found, key=lambda fact: (-round(fact.support, 6), fact.kind, fact.what))


def _time_facts(seen: ObservedWindow, weighed: Weighed, service: int) -> list[Fact]:
    spans = seen.spans
    found = []
    for times, normal, change in (
        (seen.own, seen.own_normal, weighed.own),
        (seen.way, seen.way_normal, weighed.way),
        (seen.call, seen.call_normal, weighed.call),
    ):
        for row, place in enumerate(change.place.tolist()):
            client, server = int(times.client[place]), int(times.server[place])
            if service not in (client, server):
                continue
            name = spans.operations[int(times.operation[place])][1]
            what = f"{spans.services[client]} calls {spans.services[server]}: {name}"
            usual = float(normal.us[place])
            found.append(
                Fact(
                    _KINDS[times.kind],
                    name if times.kind == "own" else what,
                    int(normal.spans[place]),
                    int(change.count[row]),
                    None if math.isnan(usual) else usual / 1000,
                    float(change.us[row]) / 1000,
                    float(change.support[row]),
                )
            )
    return found


def _shape_facts(seen: ObservedWindow, weighed: Weighed, service: int) -> list[Fact]:
    spans, done, odd = seen.spans, seen.shapes, weighed.odd
    strange = done.surprising & (spans.era == spans.eras - 1)
    found = []
    for row, place in enumerate(odd.place.tolist()):
        support = max(float(odd.new[row]), float(odd.mix[row]))
        client, server = int(done.client[place]), int(done.server[place])
        if service in (client, server) and support > 0:
            name = spans.operations[int(done.operation[place])][1]
            if client != server:
                name = f"{spans.services[client]} calls {spans.services[server]}: {name}"
            kind = "outcome never seen" if odd.new[row] >= odd.mix[row] else "other mix of calls"
            before, count = int(seen.habits.spans[place]), int(odd.count[row])
            gained = odd.unseen[row] / odd.count[row] if odd.new[row] >= odd.mix[row] else odd.gained[row]
            failed = spans.error[strange & (spans.operation == done.operation[place])]
            ended = float(failed.mean()) if len(failed) else 0.0
            found.append(Fact(kind, name, before, count, 0.0, float(gained), support, ended))
    return found


def _log_facts(weighed: Weighed, service: int) -> list[Fact]:
    """Records by the template that shows a change most: how many were expected, and how many came."""
    return [
        Fact(one.kind, one.text, one.before, int(one.count), one.expected, one.count, one.support)
        for one in weighed.logs.get(service, ())
        if one.support > 0
    ]


def evidence(
    seen: ObservedWindow, decision: Decision, shown: Sequence[tuple[Blamed, str, Symptoms]], doubts: float
) -> list[Evidence]:
    """The blamed, what changed at each, the chart, the cleared, example traces."""
    made = [_blamed_table(seen, decision, shown, doubts)]
    for one, component, signs in shown:
        made.append(_changes_table(facts_about(seen, decision.weighed, one), component))
        if signs.examples:
            made.append(
                text(f"Traces that show it: {component}", "The clearest first: " + ", ".join(signs.examples))
            )
    cleared = _cleared(seen, decision)
    drawn = _times_chart(seen, decision, shown, cleared)
    made += [drawn] if drawn is not None else []
    made += [_cleared_table(seen, decision, cleared)] if cleared else []
    return made


def _blamed_table(
    seen: ObservedWindow, decision: Decision, shown: Sequence[tuple[Blamed, str, Symptoms]], doubts: float
) -> Evidence:
    rows = []
    for one, component, signs in shown:
        facts = facts_about(seen, decision.weighed, one)
        speaking = [fact for fact in facts if fact.support > 1]
        rows.append(
            (
                component,
                probability(one.odds - doubts),
                one.odds,
                len(speaking),
                len(facts),
                signs.hit,
                signs.passed,
            )
        )
    columns = (
        "component",
        "probability",
        "evidence (nats)",
        "places changed",
        "places seen",
        "traces hit",
        "traces through it",
    )
    return table(
        "Blamed",
        columns,
        tuple(rows),
        "A place is an operation's own time, a kind of call, what an operation does, or log records. " + NATS,
    )


def _changes_table(facts: list[Fact], component: str) -> Evidence:
    rows = tuple(
        (
            fact.kind,
            fact.what,
            fact.before,
            fact.spans,
            fact.normal,
            fact.now,
            fact.support,
        )
        for fact in facts[:_MOST_FACTS]
    )
    columns = ("what", "where", "spans before", "spans now", "normal", "now", "evidence (nats)")
    return table(
        f"Changes at {component}",
        columns,
        rows,
        "Own times and ways are means in milliseconds; outcomes and mixes are shares of the spans; records are counts, "
        f"normal is how many were expected. {NATS}",
    )


def _cleared(seen: ObservedWindow, decision: Decision) -> list[int]:
    """The services that come next and are not blamed."""
    gone = _entries(decision)
    order = sorted(
        range(len(seen.spans.services)),
        key=lambda service: (-round(float(decision.odds[service]), 6), seen.spans.services[service]),
    )
    return [service for service in order if service not in gone][:_RUNNERS_UP]


def _entries(decision: Decision) -> set[int]:
    """The blamed services and those that the data cannot tell from them."""
    alike = {one.alike for one in decision.blamed if one.alike is not None}
    return {one.service for one in decision.blamed} | alike


def _cleared_table(seen: ObservedWindow, decision: Decision, cleared: list[int]) -> Evidence:
    rows = []
    gone = _entries(decision)
    for service in cleared:
        facts = facts_of(seen, decision.weighed, service)
        shared = _shared(seen, facts, gone)
        own = max((fact.support for fact in facts if fact not in shared), default=0.0)
        rows.append(
            (
                f"service/{seen.spans.services[service]}",
                round(float(decision.odds[service]), 1),
                round(own, 1),
                len(shared),
                "changes there are explained by blamed services" if shared else "too little changed there",
            )
        )
    return table(
        "Looked into and cleared",
        (
            "component",
            "evidence (nats)",
            "strongest of its own (nats)",
            "changed places shared with the blamed",
            "why it is cleared",
        ),
        tuple(rows),
        f"Evidence counts places that the blamed explain as well; what is left without them is too little. {NATS}",
    )


def _shared(seen: ObservedWindow, facts: list[Fact], gone: set[int]) -> list[Fact]:
    names = [seen.spans.services[service] for service in gone]
    return [
        fact
        for fact in facts
        if fact.support > 1
        and fact.kind in (_KINDS["way"], _KINDS["call"])
        and any(f"{name} calls " in fact.what or f" calls {name}: " in fact.what for name in names)
    ]


def _times_chart(
    seen: ObservedWindow,
    decision: Decision,
    shown: Sequence[tuple[Blamed, str, Symptoms]],
    cleared: list[int],
) -> Evidence | None:
    """Normal and present times of the places that changed most, of the blamed and of the cleared."""
    values: list[Json] = []
    groups = [(component, facts_about(seen, decision.weighed, one)) for one, component, _ in shown]
    for service in cleared:
        groups.append((f"service/{seen.spans.services[service]}", facts_of(seen, decision.weighed, service)))
    for component, facts in groups:
        timed = [fact for fact in facts if fact.kind in _KINDS.values() and fact.normal is not None]
        for fact in timed[: _MOST_BARS if component == groups[0][0] else 3]:
            place = f"{fact.what} ({fact.kind})"
            if any(value["place"] == place for value in values):
                continue
            for when, ms in (("normal", fact.normal or 0.0), ("now", fact.now)):
                values.append({"component": component, "place": place, "when": when, "ms": max(ms, 0.001)})
    if not values:
        return None
    return chart(
        "Times now and before",
        _dots(values, [value["place"] for value in values if value["when"] == "now"]),
        "Mean milliseconds, on a logarithmic scale; the blamed come first.",
    )


def _dots(values: list[Json], order: list[str]) -> Json:
    y = {"field": "place", "type": "nominal", "title": None, "sort": order, "axis": {"labelLimit": 420}}
    x = {"field": "ms", "type": "quantitative", "title": "milliseconds", "scale": {"type": "log"}}
    when = {
        "field": "when",
        "type": "nominal",
        "title": None,
        "scale": {"domain": ["normal", "now"], "range": ["#9aa5b1", "#c0392b"]},
        "legend": {"orient": "top"},
    }
    return {
        "$schema": SCHEMA,
        "width": 360,
        "height": {"step": 20},
        "data": {"values": values},
        "encoding": {"x": x, "y": y},
        "layer": [
            {"mark": {"type": "line", "color": "#9aa5b1"}, "encoding": {"detail": {"field": "place"}}},
            {
                "mark": {"type": "point", "filled": True, "size": 70, "tooltip": {"content": "data"}},
                "encoding": {"color": when},
            },
        ],
    }


_SLOWER = 1.1
"""Ratio of means from which on it is told; a mean of logarithms may rise while the plain mean does not."""


def summary(facts: Sequence[Fact], component: str) -> str:
    """One sentence; `facts` are those of the component's service, what speaks most first."""
    name = component.partition("/")[2]
    if not facts or facts[0].support <= 0:
        return f"{name} explains best what changed."
    top = facts[0]
    others = sum(fact.support > 1 for fact in facts) - 1
    more = f", and {others} other place{'s' if others != 1 else ''} changed" if others > 0 else ""
    normal = "none was seen before" if top.normal is None else f"{_ms(top.normal)} before"
    if top.kind == "own time":
        return f"{name} itself spends {_ms(top.now)} in {top.what} ({normal}){more}."
    if top.kind == "on the way":
        return f"{name} is slow to reach: {_ms(top.now)} pass on the way where {top.what} ({normal}){more}."
    if top.kind == "reported by callers only":
        return (
            f"Callers wait {_ms(top.now)} where {top.what} ({normal}), and {name} has no spans of it{more}."
        )
    if top.kind == "outcome never seen":
        end = "in errors that none had before" if top.failed >= 0.5 else "as none did before"
        return f"{percent(top.now)} of {top.what} at {name} end {end}{more}."
    if top.kind == "missing records":
        return f'{name} wrote {top.now:,.0f} of {top.normal or 0:,.0f} expected log records "{cut(top.what)}"{more}.'
    if top.kind == "more bad records":
        return f'{name} wrote {top.now:,.0f} log records "{cut(top.what)}" ({top.normal or 0:,.1f} expected){more}.'
    if top.kind == "records never seen":
        return f'{name} wrote {top.now:,.0f} log records "{cut(top.what)}", never seen before{more}.'
    return f"{name} calls other services than before in {percent(top.now)} of {top.what}{more}."


def sentence_of(facts: Sequence[Fact]) -> str:
    """The end of a title that begins with the component, in at most 200 characters and without names."""
    if not facts or facts[0].support <= 0:
        return "is the best explanation of changes in traces"
    top = facts[0]
    if top.kind == "outcome never seen":
        if top.failed >= 0.5:
            return f"fails: {percent(top.now)} of its spans of one kind end in errors that none had before"
        return f"answers otherwise than before: {percent(top.now)} of its spans of one kind end as none did"
    if top.kind == "other mix of calls":
        return f"calls other services than before, in {percent(top.now)} of its spans of one kind"
    if top.kind == "missing records":
        return f"skips steps: {top.now:,.0f} of {top.normal or 0:,.0f} expected log records of one kind"
    if top.kind == "more bad records":
        return f"logs {top.now:,.0f} failures of one kind where {top.normal or 0:,.1f} are normal"
    if top.kind == "records never seen":
        return f"writes {top.now:,.0f} log records of a kind never seen before"
    where = {"on the way": " to reach", "reported by callers only": ", as reported by its callers"}.get(
        top.kind, ""
    )
    if top.normal is None:
        return f"is slow{where}: {_ms(top.now)} where nothing was seen before"
    ratio = top.now / max(top.normal, 1e-3)
    if ratio < _SLOWER:
        return f"is slower{where} than normally"
    times = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
    return f"is slow{where}: {times} times its normal time ({_ms(top.now)} instead of {_ms(top.normal)})"


def cut(text: str) -> str:
    """The words of a template that say most, in at most 80 characters: without what varies at its front."""
    short = " ".join(word for word in text.split(" ") if word not in ("<*>", "INFO", "TraceID:", "SpanID:"))
    return short if len(short) <= 80 else short[:79] + "…"


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:,.0f} ms" if milliseconds >= 10 else f"{milliseconds:.2g} ms"
