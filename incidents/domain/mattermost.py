"""Shapes of Mattermost: the attachment of an incident, a pressed button, a typed command. Pure.

Attachments: https://developers.mattermost.com/integrate/reference/message-attachments, buttons and menus:
https://developers.mattermost.com/integrate/plugins/interactive-messages, commands:
https://developers.mattermost.com/integrate/slash-commands/custom.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from incidents.domain.chat import (
    OPTIONS_LIMIT,
    SPANS,
    TEXT_LIMIT,
    TITLE_LIMIT,
    Markup,
    Name,
    TypedRequest,
    cut,
    facts,
    fallback,
    likelihood,
)
from incidents.domain.incident.state import Incident
from incidents.domain.values import InvalidValueError

# Message
# ----------------------------------------------------------------------------------------------------------
COLORS: Final = {"info": "#5b7083", "warning": "#b97900", "error": "#c8372d", "critical": "#8f1414"}
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()#+!|<>~])")


def uncalled(text: str) -> str:
    """Text whose @names call nobody: a zero-width space follows each @."""
    return text.replace("@", "@\u200b")


def escaped(text: str) -> str:
    """Text without mentions and formatting of its own: a title of an alert calls nobody in a channel."""
    return uncalled(_SPECIAL.sub(r"\\\1", text))


def _code(text: str) -> str:
    return f"`{uncalled(text.replace('`', chr(39)))}`"


MARKUP: Final = Markup(escaped, lambda text: f"**{text}**", _code, lambda url, text: f"[{text}]({url})")


def attachment(it: Incident, url: str, teams: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The attachment of an incident as it stands, with the buttons and menus that fit its state; they lack their
    `integration` (`with_integrations`). `teams`: slug and name of those it can be handed over to."""
    text = ""
    if it.verdict:
        text = f"**Verdict** {escaped(it.verdict)}{likelihood(it)}"
    elif it.description:
        text = escaped(it.description)
    return {
        "fallback": uncalled(fallback(it)),
        "color": COLORS.get(it.severity, COLORS["warning"]),
        "title": uncalled(cut(f"#{it.number} {it.title}", TITLE_LIMIT)),
        "title_link": url,
        "text": cut(text, TEXT_LIMIT),
        "fields": [{"short": True, "title": name, "value": escaped(value)} for name, value in facts(it)],
        "actions": _actions(it, teams),
    }


def _actions(it: Incident, teams: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    if it.state == "resolved" or it.merged_into is not None:
        return []
    shown: list[dict[str, Any]] = []
    if it.state != "acknowledged":
        shown.append({"id": "acknowledge", "type": "button", "name": "Acknowledge", "style": "primary"})
    shown.append({"id": "assign", "type": "button", "name": "Assign to me"})
    others = [(slug, name) for slug, name in teams if slug != it.team][:OPTIONS_LIMIT]
    if others:
        shown.append(_menu("handover", "Hand over to…", others))
    if it.firing:
        shown.append(_menu("silence", "Silence for…", SPANS))
    return shown


def _menu(action: str, name: str, options: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The service takes only letters and digits in the id of an action."""
    listed = [{"text": cut(text, 75), "value": value} for value, text in options]
    return {"id": action, "type": "select", "name": name, "options": listed}


def with_integrations(content: Mapping[str, Any], address: str, secrets: Mapping[str, str]) -> dict[str, Any]:
    """The attachment with the address that its buttons are sent to, and the secret of each by its id."""
    actions = [
        {**one, "integration": {"url": address, "context": {"button": secrets[one["id"]]}}}
        for one in content["actions"]
    ]
    return {**content, "actions": actions}


# Requests
# ----------------------------------------------------------------------------------------------------------
class PressContext(msgspec.Struct):
    button: str = ""
    selected_option: str = ""


class Press(msgspec.Struct):
    """A pressed button or a choice of a menu, as the Mattermost server sends it."""

    user_id: Name
    trigger_id: str = ""
    channel_id: str = ""
    post_id: str = ""
    context: PressContext = msgspec.field(default_factory=PressContext)


class Command(TypedRequest):
    """A slash command as its form has it."""

    token: str = ""
    trigger_id: str = ""


_PRESS: Final = msgspec.json.Decoder(Press)


def read_request(form: Mapping[str, str] | None, body: bytes) -> Press | Command:
    """A request of Mattermost: `form` is its decoded form, or None for a JSON body. Raises InvalidValueError."""
    try:
        return _PRESS.decode(body) if form is None else msgspec.convert(dict(form), Command)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidValueError("request", f"is not a request of Mattermost: {error}") from None


@dataclass(frozen=True, slots=True)
class Trigger:
    """Parts of a `trigger_id`: a name that no other request has, the account, and the moment."""

    id: str
    user_id: str
    at: datetime


def read_trigger(text: str) -> Trigger:
    """The parts of base64 of `ID:USER:MILLISECONDS:SIGNATURE`; only the Mattermost server has the key of its signature.
    Raises InvalidValueError."""
    try:
        id_, user_id, at, _ = base64.b64decode(text[:2_000], validate=True).decode("ascii").split(":")
        if not (0 < len(id_) <= 60 and at.isdigit() and len(at) < 16):
            raise ValueError(text[:60])
        return Trigger(id_, user_id, datetime.fromtimestamp(int(at) / 1_000, UTC))
    except (ValueError, binascii.Error, OverflowError, OSError):
        raise InvalidValueError("trigger_id", "is not one of Mattermost") from None
