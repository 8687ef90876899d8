"""Shares, figures, names and the state of a failure as the console writes them; times (`times`) come along."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

from django import template
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from analyzers.queries import Schedule, Wait, analyzer_problems, analyzers, schedule_waits
from frontend import evidence, times
from frontend.charts import bundle_name
from frontend.markdown import render
from frontend.settings_map import groups_for, section_of
from frontend.times import clock, exact_words, is_one_minute, span_to
from incidents.domain.incident.alerts import is_on_several, is_storm
from incidents.domain.incident.state import Failure, Incident
from incidents.domain.oncall.spans import lead_words
from ingest.queries import Position, is_component

register = template.Library()
register.filters.update(times.register.filters)
register.tags.update(times.register.tags)
SECTIONS = (
    ("inbox", "Inbox"),
    ("grid", "Grid"),
    ("components", "Components"),
    ("on_call", "On call"),
    ("analyzers", "Analyzers"),
    ("reports", "Reports"),
    ("settings", "Settings"),
    ("docs", "Docs"),
)


@register.simple_tag
def sections() -> tuple[tuple[str, str], ...]:
    """The parts of the console: the name of the address and the words in the bar."""
    return SECTIONS


_NO_PATH = frozenset({"", ".", ".."})
"""Parts of a name that browsers take out of a path."""


@register.filter
def component_url(name: str | None) -> str:
    """The page of a component; empty for what is no component's name."""
    if not name or not is_component(name):
        return ""
    if _NO_PATH.intersection(name.split("/")):
        return f"{reverse('component_named')}?{urlencode({'name': name})}"
    return reverse("component", args=[name])


@register.filter
def component_chip(name: str) -> SafeString:
    """A component, leading to its page; what is no component's name stands there as it is."""
    if address := component_url(name):
        return format_html('<a class="chip" href="{}">{}</a>', address, name)
    return format_html('<span class="chip">{}</span>', name)


@register.filter
def analyzer_link(name: str) -> SafeString:
    """An analyzer, leading to its page; one that is faulty, or not installed any more, has none."""
    if name in analyzers():
        return format_html('<a href="{}">{}</a>', reverse("analyzer", args=[name]), name)
    is_faulty = any(problem.name == name for problem in analyzer_problems())
    return format_html(
        '{} <span class="muted">({})</span>', name, "cannot be used" if is_faulty else "not installed"
    )


@register.filter
def cited(text: str, number: int) -> SafeString:
    """A cited run, leading to its page, or a log position, leading to incident `number` as it stood then."""
    address = ""
    with suppress(ValueError):
        address = reverse("run", args=[UUID(text)])
    with suppress(ValueError):
        address = f"{reverse('incident', args=[number])}?as_of={Position.parse(text)}"
    shown = format_html("<code>{}</code>", text)
    return format_html('<a href="{}">{}</a>', address, shown) if address else shown


@register.filter
def waits(schedule: Schedule) -> list[Wait]:
    """Schedules that have not run yet, with the reason."""
    return schedule_waits(schedule, timezone.now())


@register.filter
def and_query(address: str, parameters: str) -> str:
    """An address that takes along `parameters`, the tail of a query such as `&region=north`."""
    return address if not parameters else f"{address}{'&' if '?' in address else '?'}{parameters.lstrip('&')}"


@register.simple_tag
def settings_groups(request: HttpRequest) -> dict[str, Any]:
    """The pages of settings that the one who looks may open, in groups, and which of them this is."""
    match = request.resolver_match
    here = section_of(match.url_name or "") if match else ""
    return {"all": groups_for(staff=getattr(request.user, "is_staff", False)), "here": here}


@register.filter
def removed_thing(tags: str) -> dict[str, str] | None:
    """Object that the button in a message restores; None where the message is about something else."""
    kind, _, key = tags.removeprefix("restore ").partition(" ")
    return {"kind": kind, "key": key} if tags.startswith("restore ") else None


@register.filter
def removed_view(tags: str) -> str:
    """The id of the saved view that the button in a message brings back; empty where it is about something else."""
    return tags.removeprefix("view ") if (tags or "").startswith("view ") else ""


@register.filter
def made_silence(tags: str) -> str:
    """The id of the silence that the button in a message ends; empty where it is about something else."""
    return tags.removeprefix("silence ") if (tags or "").startswith("silence ") else ""


@register.simple_tag
def charts_address() -> str:
    return reverse("charts", args=[bundle_name()])


@register.filter
def percent(share: float | None) -> str:
    """`2.1 %`; never a false 0 or 100."""
    if share is None:
        return "–"
    value = share * 100
    if 0 < value < 0.1:
        return "<\u00a00.1\u00a0%"
    if 99 < value < 100:
        return ">\u00a099\u00a0%"
    return f"{value:.1f}\u00a0%" if value < 10 and value != int(value) else f"{value:.0f}\u00a0%"


@register.filter
def exact_share(share: float) -> str:
    """`99.953 %`: with the digits in which availabilities differ; never a false 100."""
    return "100\u00a0%" if share >= 1 else f"{min(share * 100, 99.999):.3f}\u00a0%"


@register.filter
def figure(value: Any) -> str:
    """A cell or a measure: four significant digits, thousands apart, the rest as it is."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f")
    if isinstance(value, float):
        return _float(value)
    return ", ".join(figure(one) for one in value) if isinstance(value, list | tuple) else str(value)


def _float(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) < 1e-3 or abs(value) >= 1e7:
        return f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}".replace(",", "\u202f")


_NAME = re.compile(r"[a-z_]+/[\w.:@~\-]+")
NAME_LENGTH, WORDS, LONG = 28, 16, 40
"""Characters up to which a component's name stays on one line, and from which a text gets room, and more room."""
SHOWN_ROWS = 30
"""Rows of a table of evidence that are seen without asking for more."""


@register.filter
def table_body(rows: Iterable[Iterable[Any]]) -> SafeString:
    """The rows of a table of evidence. In Python: as nodes of a template the cells took a third of an
    incident's page.
    """
    return mark_safe("".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows))


@register.filter
def message_piece(piece: Any) -> dict[str, Any]:
    """The columns and rows of a table of evidence, without columns in which nothing stands; of a long one the `rest`
    by themselves, so that what comes below it is found.
    """
    lines = [
        any(row[place] not in (None, "", [], ()) for row in piece.rows) for place in range(len(piece.columns))
    ]
    if all(lines) or not piece.rows:
        return _cut(piece.columns, piece.rows)
    rows = [[cell for cell, parameters in zip(row, lines, strict=True) if parameters] for row in piece.rows]
    return _cut([name for name, parameters in zip(piece.columns, lines, strict=True) if parameters], rows)


def _cut(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    at = SHOWN_ROWS if len(rows) > 1.5 * SHOWN_ROWS else len(rows)
    return {"columns": columns, "rows": rows[:at], "rest": rows[at:]}


def _cell(value: Any) -> str:
    shown = figure(value)
    if shown[:1].isdigit() and shown.endswith("Z"):
        return f'<td class="nowrap">{times.instants(shown)}</td>'
    return f"<td{cell_class(value)}>{times.instants(shown) if 'UTC' in shown else escape(shown)}</td>"


def cell_class(value: Any) -> str:
    """CSS class of a table cell: figures to the right, names of components and `3 h 20 min` unbroken, sentences with
    room."""
    if is_number(value):
        return ' class="number"'
    text = value if isinstance(value, str) else ""
    if len(text) <= NAME_LENGTH and _NAME.fullmatch(text):
        return ' class="name"'
    if len(text) < WORDS and text[:1].isdigit():
        return ' class="nowrap"'
    if len(text) < WORDS or " " not in text:
        return ""
    return ' class="long"' if len(text) >= LONG else ' class="words"'


@register.filter
def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@register.filter
def duration(span: timedelta | float | None) -> str:
    """`1 h`, `5 min`, `1 h 30 min`, `12 ms`."""
    if span is None:
        return "–"
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    parts, rest = [], round(seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


@register.filter
def whole_minutes(seconds: float) -> str:
    """Time that a person had an incident: in minutes and more, since a page stands for a while."""
    return "under 1 min" if seconds < 60 else duration(seconds // 60 * 60)


@register.filter
def hundredths(share: float | None) -> str:
    """A share as a coordinate from 0 to 100, for a bar drawn in SVG."""
    return f"{100 * min(max(share or 0.0, 0.0), 1.0):.2f}"


@register.filter
def actor_name(actor: str) -> str:
    """`user:alice` is alice; keys, the system and whoever has a shell on its machine are named as such."""
    kind, _, name = actor.partition(":")
    named = {"user": name, "key": f"key {name}", "system": "Dossier", "shell": f"{name} (shell)"}
    return named.get(kind, actor)


register.filter("is_on_several", is_on_several)
register.filter("is_storm", is_storm)
register.filter("lead_words", lead_words)


@register.filter
def undo_step(tags: str) -> dict[str, Any]:
    """Of `assign/12?owner=bob` the verb, the number and the fields: what the button in a message does."""
    verb, _, rest = tags.partition("/")
    number, _, fields = rest.partition("?")
    return {"verb": verb, "number": int(number), "fields": parse_qsl(fields, keep_blank_values=True)}


@register.filter
def spaced(name: str) -> str:
    """`escalation policy` of `escalation_policy`."""
    return name.replace("_", " ")


@register.filter
def lookup(names: dict[str, Any], key: str) -> Any:
    """Value under `key`, or the key itself: a team may have been deleted since."""
    return names.get(key, key)


@register.filter
def beyond(verdict: str | None, title: str) -> str:
    """Part of a verdict that the title above it lacks: `, over 99 % likely` of a sentence that begins with it."""
    sentence = verdict or ""
    rest = sentence.removeprefix(title).strip(" ,;:.")
    if sentence.startswith(title):
        return rest[:1].upper() + rest[1:]
    # The title says what was found first; of a later sentence on the same component its name is not said again.
    about, _, later = rest.partition(" ")
    if later and is_component(about) and title.startswith(f"{about} "):
        return f"Latest: {later}"
    # A sentence that is shown whole may begin with a component, whose name is not to be changed.
    return rest


@register.filter
def lookup_in(names: dict[str, Any], key: str) -> Any:
    """Value under `key`, empty where there is none."""
    return names.get(key, "")


@register.filter
def short_name(component: str) -> str:
    """A component's name without its kind, where that is said beside it."""
    return component.partition("/")[2] or component


@register.filter
def markdown(text: str) -> SafeString:
    """A comment, as safe HTML."""
    return render(text)


@register.filter
def event_kind(name: str) -> str:
    """`reassigned` of `incident.reassigned`."""
    return name.rpartition(".")[2]


@register.filter
def range_span(estimate: dict[str, float]) -> dict[str, float]:
    """Positions of low, rate and high of an interval on an axis from 0 to a round `end`, in hundredths."""
    ends = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    end = next((end for end in ends if estimate["high"] <= end), 1.0)
    places = {name: round(100 * estimate[key] / end, 2) for name, key in _PLACES}
    return {**places, "end": end}


@register.filter
def measured(estimate: dict[str, Any]) -> SafeString:
    """Meaning of an estimate's share, in its analyzer's words: `loses 85 % of the probes over it`."""
    before, _, after = str(estimate.get("phrase") or "failure rate {}").partition("{}")
    return format_html("{}<strong>{}</strong>{}", before, percent(estimate["failure_rate"]), after)


_PLACES = (("low", "low"), ("rate", "failure_rate"), ("high", "high"))


@register.filter
def chart_table(spec: dict[str, Any]) -> dict[str, Any]:
    columns, rows, total = evidence.chart_table(spec)
    return {"columns": columns, "rows": rows, "total": total}


@register.filter
def as_json(value: Any) -> SafeString:
    """JSON for a data block in a page: what could end the block is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return mark_safe(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


@register.filter
def column_is_number(rows: list[list[Any]], place: int) -> bool:
    """Whether a column holds numbers, so that its heading stands over them."""
    cells = [row[place] for row in rows if row[place] is not None]
    return bool(cells) and all(is_number(cell) for cell in cells)


@register.filter
def minutes(count: float | None) -> str:
    """Of a number of minutes: `12 min`, `1 h 30 min`."""
    if count is not None and count < 1:
        return "< 1 min"
    return duration(None if count is None else round(count) * 60)


@register.filter
def ticks(text: str) -> SafeString:
    """Text with what stands between backticks as code, and its moments by the reader's clock."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return times.instants(text)
    marked = (
        ("<code>{}</code>", (piece,)) if place % 2 else ("{}", (times.instants(piece),))
        for place, piece in enumerate(pieces)
    )
    return format_html_join("", "{}", ((format_html(form, *args),) for form, args in marked))


# State of the failure
# ----------------------------------------------------------------------------------------------------------
PAST = {
    "answers": "answered",
    "calls": "called",
    "complains": "complained",
    "drops": "dropped",
    "fails": "failed",
    "has": "had",
    "is": "was",
    "loses": "lost",
    "misses": "missed",
    "skips": "skipped",
}
"""Verbs with which phrases of analyzers begin."""
FAILURE_WORDS = {
    "failing": ("failing", "Failing"),
    "quiet": ("quiet", "Quiet since"),
    "no_data": ("inconclusive", "No data since"),
}


@register.simple_tag
def failure_pill(failure: Failure | None) -> SafeString | str:
    """`Failing`, `Quiet since 22 Nov 19:35`, `No data since 22 Nov 22:10`; empty where it is unknown."""
    if not failure or failure.state == "unknown":
        return ""
    style, text = FAILURE_WORDS[failure.state]
    if failure.state == "failing":
        since = "" if failure.since is None else f"since {exact_words(failure.since)}"
        return format_html(
            '<span class="pill {}" data-failure="failing" title="{}">{}</span>', style, since, text
        )
    return format_html(
        '<span class="pill {}" data-failure="{}">{} {}</span>',
        style,
        failure.state,
        text,
        clock(failure.since),
    )


def past_tense(title: str, component: str | None) -> str:
    """`tor/t1 failed 94 % of what depends on it`; a title that does not begin with a known verb stays as it is."""
    match = re.match(rf"({re.escape(component or '')} )(\w+)", title) if component else None
    if match is None or match[2] not in PAST:
        return title
    return match[1] + PAST[match[2]] + title[match.end() :]


@register.filter
def without_title(summary: str, title: str) -> str:
    """A suspect's summary without the clause that the title of the page says already."""
    if title.startswith(summary.rstrip(".")):
        return ""
    clause, colon, rest = summary.partition(": ")
    return rest[:1].upper() + rest[1:] if colon and title.startswith(clause) else summary


@register.simple_tag
def failure_title(incident: Incident, failure: Failure | None, text: str) -> SafeString | str:
    """The sentence `text` of an incident: in the past tense, with the span of its failures, once these are over."""
    by_analyzer = incident.titled_by_analyzer or text == incident.verdict
    if not failure or failure.state != "quiet" or not by_analyzer:
        return text
    past = past_tense(text, incident.component)
    if incident.failing_since is None or incident.last_failure is None:
        return past
    title = past_tense(incident.title, incident.component)
    if past == text or not past.startswith(title):
        return past
    span = span_to(incident.failing_since, incident.last_failure)
    word = "at" if is_one_minute(incident.failing_since, incident.last_failure) else "from"
    return format_html("{} {} {}{}", title, word, span, past[len(title) :])
