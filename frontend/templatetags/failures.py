"""State of the failure as the console writes it: a pill, and titles in the past tense once it is over."""

from __future__ import annotations

import re

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from frontend.templatetags.times import clock, exact_words, span_to
from incidents.domain.incident.failure import Failure
from incidents.domain.incident.state import Incident

register = template.Library()

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
WORDS = {
    "failing": ("failing", "Failing"),
    "quiet": ("quiet", "Quiet since"),
    "no_data": ("inconclusive", "No data since"),
}


@register.simple_tag
def failure_pill(failure: Failure | None) -> SafeString | str:
    """`Failing`, `Quiet since 22 Nov 19:35`, `No data since 22 Nov 22:10`; empty where it is unknown."""
    if not failure or failure.state == "unknown":
        return ""
    style, text = WORDS[failure.state]
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


@register.simple_tag
def failure_title(incident: Incident, failure: Failure | None, text: str) -> SafeString | str:
    """The sentence `text` of an incident: in the past tense, with the span of its failures, once these are over."""
    said = incident.titled_by_analyzer or text == incident.verdict
    if not failure or failure.state != "quiet" or not said:
        return text
    past = past_tense(text, incident.component)
    if incident.failing_since is None or incident.last_failure is None:
        return past
    title = past_tense(incident.title, incident.component)
    if past == text or not past.startswith(title):
        return past
    span = span_to(incident.failing_since, incident.last_failure)
    return format_html("{} from {}{}", title, span, past[len(title) :])
