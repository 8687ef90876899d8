"""The text of a notification: subject, short and long text, what machines get; of one incident or several. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

from incidents.domain.escalation.policy import spoken
from incidents.domain.incident.finding import percent
from incidents.domain.values import (
    SEVERITIES,
    Severity,
    optional_rfc3339,
)

MOST_SHOWN: Final = 20
"""Incidents that one message describes; people get the number of the rest, machines their list."""
SUBJECT_LIMIT: Final = 150
SHORT_LIMIT: Final = 300
DESCRIPTION_LIMIT: Final = 1_000
LABELS_SHOWN: Final = 12
LINKS_SHOWN: Final = 6


@dataclass(frozen=True, slots=True)
class MessageLine:
    """An incident as a message tells it. `reason` is why the reader is called."""

    id: str
    number: int
    title: str
    severity: Severity
    state: str
    team: str
    component: str | None
    verdict: str | None
    confidence: float | None
    reason: str
    url: str
    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    links: Sequence[Mapping[str, str]] = ()
    """`href` and `text`, such as the runbook and the query of an alert."""
    opened_at: datetime | None = None
    alerts: int = 0
    firing: int = 0
    resolved_at: datetime | None = None
    resolved_by: str | None = None
    confirmed_cause: str | None = None
    over: bool = False
    """The message says that it is over."""
    answer_url: str = ""
    """Link for an answer without signing in, once; empty where no person is addressed, or it is over."""


@dataclass(frozen=True, slots=True)
class Message:
    subject: str
    text: str
    short: str
    severity: Severity | None
    """Of the worst incident that needs somebody; None where all that the message is about are over, and of a test."""
    body: Mapping[str, Any]
    """For machines."""
    link: str = ""
    """Address of the short form's link."""


def compose(id: str, entries: Sequence[MessageLine], base_url: str) -> Message:
    """`entries` is not empty. The worst incident is first; `id` is that of the message, also when it is sent again."""
    incidents = sorted(entries, key=lambda one: (one.over, SEVERITIES.index(one.severity), one.number))
    first, others = incidents[0], len(incidents) - 1
    more = f" and {others} more" if others else ""
    word = "resolved" if first.over else first.severity
    subject = _cut(f"[{word}] #{first.number} {first.title}", SUBJECT_LIMIT - len(more)) + more
    link = base_url if others else first.answer_url or first.url
    hidden = len(incidents) - MOST_SHOWN
    parts = [_described(one) for one in incidents[:MOST_SHOWN]]
    if hidden > 0:
        parts.append(f"And {hidden} more: {base_url}\n")
    return Message(
        subject=subject,
        text="\n".join(parts),
        short=f"{_cut(subject, SHORT_LIMIT - len(link) - 1)} {link}",
        severity=None if first.over else first.severity,
        body={
            "id": id,
            "type": "notification",
            "text": subject,
            "incidents": [_as_json(one) for one in incidents[:MOST_SHOWN]],
            "others": [
                {"id": one.id, "number": one.number, "severity": one.severity}
                for one in incidents[MOST_SHOWN:]
            ],
            "total": len(incidents),
        },
        link=link,
    )


def test_message(id: str, person: str, base_url: str) -> Message:
    """Test message of a person to themselves."""
    text = f"This is a Dossier test message for {person}. Incident notifications look like this. {base_url}"
    body = {"id": id, "type": "test", "text": text, "incidents": [], "others": [], "total": 0}
    return Message("Dossier test message", f"{text}\n", text, None, body, base_url)


def _as_json(one: MessageLine) -> dict[str, Any]:
    times = {name: optional_rfc3339(getattr(one, name)) for name in ("opened_at", "resolved_at")}
    return {**asdict(one), **times}


def _described(one: MessageLine) -> str:
    return _ended(one) if one.over else _needed(one)


def _ended(one: MessageLine) -> str:
    lines = [
        f"#{one.number} {one.title}",
        f"Resolved by {_greeting_name(one.resolved_by)}{_after(one)}",
        *([f"Cause: {one.confirmed_cause}"] if one.confirmed_cause else []),
        f"Team: {one.team}",
        one.url,
    ]
    return "\n".join(lines) + "\n"


def _greeting_name(name: str | None) -> str:
    return "Dossier (all alerts resolved)" if name is None or name.startswith("system:") else name


def _after(one: MessageLine) -> str:
    if one.opened_at is None or one.resolved_at is None:
        return ""
    return f", {spoken((one.resolved_at - one.opened_at).total_seconds())} after opening"


def _needed(one: MessageLine) -> str:
    blamed = one.verdict or ""
    if blamed and one.confidence is not None and "likely at fault" not in blamed:
        blamed = f"{blamed} ({percent(one.confidence)} likely at fault)"
    described = _cut(one.description.strip(), DESCRIPTION_LIMIT)
    lines = [
        f"#{one.number} {one.title}",
        *([described] if described and described != one.title else []),
        f"Severity: {one.severity}",
        *([f"Since: {one.opened_at:%Y-%m-%d %H:%M} UTC"] if one.opened_at else []),
        *([f"Component: {one.component}"] if one.component else []),
        *([f"Alerts: {one.firing} of {one.alerts} firing"] if one.alerts > 1 else []),
        f"Team: {one.team}",
        *([f"Verdict: {blamed}"] if blamed else []),
        *_labels(one.labels),
        *(f"{_cut(link.get('text') or 'Link', 80)}: {link['href']}" for link in one.links[:LINKS_SHOWN]),
        f"Reason: {one.reason}",
        one.url,
        *(
            [f"Acknowledge, snooze or hand over without signing in: {one.answer_url}"]
            if one.answer_url
            else []
        ),
    ]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> list[str]:
    """One line of the first labels by name; those that every alert has say nothing."""
    shown = [f"{name}={_cut(value, 60)}" for name, value in sorted(labels.items())][:LABELS_SHOWN]
    return [f"Labels: {', '.join(shown)}"] if shown else []


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
