"""What was seen at a suspect, in words: a sentence for the verdict, and the end of one for titles."""

from __future__ import annotations

from collections.abc import Sequence

from analyzers.builtin.text import percent
from analyzers.builtin.trace_blame.evidence import Fact

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
    if top.kind == "told by callers alone":
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
        return "explains best what changed in traces"
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
    where = {"on the way": " to reach", "told by callers alone": ", its callers say"}.get(top.kind, "")
    if top.normal is None:
        return f"is slow{where}: {_ms(top.now)} where nothing was seen before"
    ratio = top.now / max(top.normal, 1e-3)
    if ratio < _SLOWER:
        return f"is slower{where} than normally"
    times = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
    return f"is slow{where}: {times} times its normal time ({_ms(top.now)} instead of {_ms(top.normal)})"


def cut(text: str) -> str:
    """The words of a template that say most, in at most 80 characters: without what varies at its front."""
    kept = " ".join(word for word in text.split(" ") if word not in ("<*>", "INFO", "TraceID:", "SpanID:"))
    return kept if len(kept) <= 80 else kept[:79] + "…"


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:,.0f} ms" if milliseconds >= 10 else f"{milliseconds:.2g} ms"
