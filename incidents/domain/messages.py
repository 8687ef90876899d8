"""What a message says: long for a mail, short for a telephone, as JSON for a machine.

A message is about one ticket, or about several that came within a few seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from incidents.domain.blame import percent
from incidents.domain.values import SEVERITIES, Severity

MOST_SHOWN: Final = 20
"""Tickets that one message describes; people are told how many the rest are, machines which."""
SUBJECT_LIMIT: Final = 150
SHORT_LIMIT: Final = 300


@dataclass(frozen=True, slots=True)
class Told:
    """A ticket as a message tells it. `reason` is why the reader is called."""

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


@dataclass(frozen=True, slots=True)
class Message:
    subject: str
    text: str
    short: str
    body: Mapping[str, Any]
    """For machines."""


def compose(id: str, told: Sequence[Told], base_url: str) -> Message:
    """`told` is not empty. The worst ticket stands first; `id` is the message's, and stays when it is sent again."""
    tickets = sorted(told, key=lambda one: (SEVERITIES.index(one.severity), one.number))
    first, others = tickets[0], len(tickets) - 1
    more = f" and {others} more" if others else ""
    subject = _cut(f"[{first.severity}] #{first.number} {first.title}", SUBJECT_LIMIT - len(more)) + more
    link = first.url if not others else base_url
    hidden = len(tickets) - MOST_SHOWN
    parts = [_described(one) for one in tickets[:MOST_SHOWN]]
    if hidden > 0:
        parts.append(f"And {hidden} more: {base_url}\n")
    return Message(
        subject=subject,
        text="\n".join(parts),
        short=f"{_cut(subject, SHORT_LIMIT - len(link) - 1)} {link}",
        body={
            "id": id,
            "type": "notification",
            "text": subject,
            "incidents": [asdict(one) for one in tickets[:MOST_SHOWN]],
            "others": [
                {"id": one.id, "number": one.number, "severity": one.severity} for one in tickets[MOST_SHOWN:]
            ],
            "total": len(tickets),
        },
    )


def test_message(id: str, who: str, base_url: str) -> Message:
    """What somebody sends to themselves to see that they can be reached."""
    text = (
        f"This is a test from Dossier for {who}: messages about tickets will look like this one. {base_url}"
    )
    body = {"id": id, "type": "test", "text": text, "incidents": [], "others": [], "total": 0}
    return Message("Dossier can reach you", f"{text}\n", text, body)


def _described(one: Told) -> str:
    blamed = one.verdict or ""
    if blamed and one.confidence is not None and "likely at fault" not in blamed:
        blamed = f"{blamed} ({percent(one.confidence)} likely at fault)"
    lines = [
        f"#{one.number} {one.title}",
        f"Severity: {one.severity}",
        f"Component: {one.component or 'not known'}",
        f"Team: {one.team}",
        f"Verdict: {blamed or 'none yet'}",
        f"Why you: {one.reason}",
        one.url,
    ]
    return "\n".join(lines) + "\n"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
