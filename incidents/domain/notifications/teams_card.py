"""Messages of Microsoft Teams: an adaptive card as the trigger "When a Teams webhook request is received" of Workflows
takes it (https://adaptivecards.io/explorer/, version 1.4). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from incidents.domain.notifications.message import Message

LISTED: Final = 10
"""Incidents of one card; Teams takes cards of 28 kB."""
TEXT_LIMIT: Final = 300
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]()#<>~|])")
_COLORS: Final[Mapping[str | None, str]] = {
    "critical": "Attention",
    "error": "Attention",
    "warning": "Warning",
    "info": "Accent",
    None: "Good",
}


def teams_message(message: Message) -> dict[str, Any]:
    """The body of the request: one message with one card."""
    incidents = message.body["incidents"]
    title = {
        **_text(message.subject),
        "weight": "Bolder",
        "size": "Medium",
        "color": _COLORS[message.severity],
    }
    blocks = [title]
    if len(incidents) == 1:
        blocks.append({"type": "FactSet", "facts": _facts(incidents[0])})
    else:
        blocks += [
            _text(f"#{one['number']} {one['title']} ({one['severity']})") for one in incidents[:LISTED]
        ]
    card = {
        "type": "AdaptiveCard",
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": blocks,
        "actions": _actions(message),
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "contentUrl": None, "content": card}]}


def _text(text: str) -> dict[str, Any]:
    """Titles of alerts come from anywhere: nothing of them is formatted, and no link of theirs is one."""
    return {"type": "TextBlock", "text": _plain(text), "wrap": True}


def _plain(text: str) -> str:
    short = text if len(text) <= TEXT_LIMIT else f"{text[: TEXT_LIMIT - 1]}…"
    return _MARKDOWN.sub(r"\\\1", " ".join(short.split()))


def _facts(one: Mapping[str, Any]) -> list[dict[str, str]]:
    state = f"resolved by {one['resolved_by']}" if one["over"] else one["state"]
    facts = [
        ("Severity", one["severity"]),
        ("State", state),
        ("Team", one["team"]),
        ("Component", one["component"] or ""),
        ("Verdict", one["verdict"] or ""),
        ("Cause", (one["confirmed_cause"] or "") if one["over"] else ""),
        ("Reason", one["reason"]),
    ]
    return [{"title": title, "value": _plain(value)} for title, value in facts if value]


def _actions(message: Message) -> list[dict[str, str]]:
    """Links; the one that answers works once, and is only in a message to one person."""
    incidents = message.body["incidents"]
    only = incidents[0] if len(incidents) == 1 else None
    shown = []
    if only and only["answer_url"]:
        shown.append(("Acknowledge, snooze or hand over", only["answer_url"]))
    address = only["url"] if only else message.link
    if address:
        shown.append(("Open in Dossier", address))
    return [{"type": "Action.OpenUrl", "title": title, "url": url} for title, url in shown]
