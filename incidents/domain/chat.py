"""Incidents in a chat: the message of one incident, replies in its thread, typed commands, buttons and dialogs. Pure.

Shapes are those of Slack (`incidents.domain.mattermost` has those of Mattermost): Block Kit for messages and dialogs
(https://docs.slack.dev/reference/block-kit), and the requests of its Events API, interactive components and slash
commands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

import msgspec

from incidents.domain.incident.finding import percent
from incidents.domain.incident.state import Fact, Incident
from incidents.domain.incident.timeline import actor_name, sentence
from incidents.domain.values import InvalidValueError, Severity, is_worse

# Message
# ----------------------------------------------------------------------------------------------------------
TITLE_LIMIT: Final = 150
"""Of a header block, by Slack."""
TEXT_LIMIT: Final = 2_900
"""Of a section block, which takes 3,000."""
OPTIONS_LIMIT: Final = 100
"""Of a menu, by Slack."""

Block = Mapping[str, Any]


def escaped(text: str) -> str:
    """Text without mentions, links and formatting of its own: a title of an alert calls nobody in a room."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@dataclass(frozen=True, slots=True)
class Markup:
    """Formatting of a chat service. `escaped`: text that formats, links and calls nothing; the others take such text,
    `code` any text."""

    escaped: Callable[[str], str]
    bold: Callable[[str], str]
    code: Callable[[str], str]
    link: Callable[[str, str], str]
    """Of an address and a text."""


SLACK_MARKUP: Final = Markup(
    escaped, lambda text: f"*{text}*", lambda text: f"`{escaped(text)}`", lambda url, text: f"<{url}|{text}>"
)


def fallback(it: Incident) -> str:
    """One line for notifications and for clients that show no blocks."""
    return cut(f"#{it.number} {it.title} ({it.severity}, {_state(it)})", TEXT_LIMIT)


def likelihood(it: Incident) -> str:
    """Probability that the component is at fault, after a verdict that does not state it."""
    if it.confidence is None or "likely at fault" in (it.verdict or ""):
        return ""
    return f" ({percent(it.confidence)} likely at fault)"


def message(it: Incident, url: str) -> list[Block]:
    """The blocks of an incident as it stands, with the buttons that fit its state."""
    blocks: list[Block] = [
        {
            "type": "header",
            "text": {"type": "plain_text", "text": cut(f"#{it.number} {it.title}", TITLE_LIMIT)},
        },
        {"type": "section", "fields": [_field(name, value) for name, value in facts(it)]},
    ]
    if it.verdict:
        blocks.append(_section(f"*Verdict* {escaped(it.verdict)}{likelihood(it)}"))
    elif it.description:
        blocks.append(_section(escaped(it.description)))
    blocks.append({"type": "actions", "elements": _buttons(it, url)})
    return blocks


def facts(it: Incident) -> list[tuple[str, str]]:
    """Names and values that a message shows."""
    firing = f"{it.firing} of {it.alerts} firing" if it.alerts else ""
    found = [
        ("Severity", it.severity),
        ("State", _state(it)),
        ("Team", it.team),
        ("Owner", it.owner or "none"),
        ("Component", it.component or ""),
        ("Alerts", firing),
    ]
    return [(name, value) for name, value in found if value]


def _state(it: Incident) -> str:
    if it.merged_number is not None:
        return f"merged into #{it.merged_number}"
    by = {"acknowledged": it.acknowledged_by, "resolved": it.resolved_by, "snoozed": it.snoozed_by}.get(
        it.state
    )
    return it.state if not by else f"{it.state} by {'Dossier' if by.startswith('system:') else by}"


def _field(name: str, value: str) -> Block:
    return {"type": "mrkdwn", "text": cut(f"*{name}*\n{escaped(value)}", 1_900)}


def _section(text: str) -> Block:
    return {"type": "section", "text": {"type": "mrkdwn", "text": cut(text, TEXT_LIMIT)}}


def _buttons(it: Incident, url: str) -> list[Block]:
    works = it.state != "resolved" and it.merged_into is None
    shown: list[Block] = []
    if works and it.state != "acknowledged":
        shown.append({**_button("acknowledge", "Acknowledge", it.id), "style": "primary"})
    if works:
        shown.append(
            {
                "type": "users_select",
                "action_id": "assign",
                "placeholder": {"type": "plain_text", "text": "Assign to…"},
            }
        )
        shown.append(_button("hand_over", "Hand over…", it.id))
    if works and it.firing:
        shown.append(_button("silence", "Silence…", it.id))
    return [*shown, {**_button("open", "Open in Dossier", it.id), "url": url}]


def _button(action: str, text: str, value: str) -> dict[str, Any]:
    return {
        "type": "button",
        "action_id": action,
        "text": {"type": "plain_text", "text": text},
        "value": value,
    }


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


# Thread
# ----------------------------------------------------------------------------------------------------------
REPLIED: Final = frozenset(
    {
        "incident.acknowledged",
        "incident.unacknowledged",
        "incident.assigned",
        "incident.reassigned",
        "incident.reassignment_accepted",
        "incident.reassignment_rejected",
        "incident.reassignment_undone",
        "incident.commented",
        "incident.severity_set",
        "incident.snoozed",
        "incident.unsnoozed",
        "incident.resolved",
        "incident.reopened",
        "incident.merged",
        "incident.unmerged",
        "incident.escalated",
        "incident.escalation_exhausted",
        "incident.proposal_accepted",
        "incident.proposal_declined",
        "incident.status_published",
    }
)
"""Events that a thread repeats: what people did, and pages. What analyzers and alerts add changes the message."""


def reply(event: Fact, markup: Markup = SLACK_MARKUP) -> str | None:
    """Reply in the thread for an event; None for one that changes the message only."""
    if event.type not in REPLIED:
        return None
    if event.type == "incident.commented":
        return cut(
            f"{markup.bold(markup.escaped(actor_name(event.actor)))}: {markup.escaped(event.body['text'])}",
            TEXT_LIMIT,
        )
    text = sentence(event)
    return cut(markup.escaped(text[:1].upper() + text[1:]), TEXT_LIMIT)


_MARKED: Final = re.compile(r"<([@#!]?)([^<>|\n]+)(?:\|([^<>\n]*))?>")


def plain_text(text: str, person: Callable[[str], str] = str) -> str:
    """Text as it was typed, of a message in Slack's markup, in which it escapes three characters and marks links,
    channels and mentions; `person` names a chat account."""

    def typed(found: re.Match[str]) -> str:
        mark, target, label = found[1], found[2], found[3] or ""
        match mark:
            case "@":
                return "@" + (label or person(target)).removeprefix("@")
            case "#":
                return "#" + (label or target)
            case "!":
                return label or "@" + target.partition("^")[0]
        is_address = not label or target.removeprefix("mailto:") == label or target.endswith(f"//{label}")
        return target.removeprefix("mailto:") if is_address else f"{label} ({target})"

    shown = _MARKED.sub(typed, text)
    return shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


# Typed commands
# ----------------------------------------------------------------------------------------------------------
Verb = Literal["help", "link", "unlink", "who", "list", "show", "ack", "assign", "handover", "silence"]
HELP: Final = """\
`/dossier who [schedule]` people on call now
`/dossier list` unresolved incidents, newest first
`/dossier show 12` one incident
`/dossier ack 12` acknowledge
`/dossier assign 12 USER` assign to a user of Dossier; `me` for yourself
`/dossier handover 12 TEAM reason` hand over to another team
`/dossier silence 12 2h reason` silence its alerts; minutes `m`, hours `h`, days `d`
`/dossier link` connect your chat account to your account in Dossier; `unlink` ends that"""
_OF_INCIDENT: Final = frozenset({"show", "ack", "assign", "handover", "silence"})
_VERBS: Final = frozenset({"help", "link", "unlink", "who", "list", *_OF_INCIDENT})
_SPAN: Final = re.compile(r"(\d{1,6})\s*(m|min|h|d)", re.IGNORECASE)
_UNITS: Final = {"m": "minutes", "min": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """`rest` is what follows the verb and the number."""

    verb: Verb
    number: int | None = None
    rest: str = ""


def parse_command(text: str) -> TypedCommand:
    """Command typed after `/dossier`. Raises InvalidValueError with what would be right."""
    verb, _, rest = text.strip().partition(" ")
    verb = verb.lower() or "help"
    if verb not in _VERBS:
        raise InvalidValueError(
            "command", f"“{cut(verb, 40)}” does not exist; `/dossier help` lists the commands"
        )
    if verb not in _OF_INCIDENT:
        return TypedCommand(verb, None, rest.strip())  # type: ignore[arg-type]
    number, _, rest = rest.strip().partition(" ")
    digits = number.removeprefix("#")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise InvalidValueError("incident", f"number is missing, such as `/dossier {verb} 12`")
    return TypedCommand(verb, int(digits), rest.strip())  # type: ignore[arg-type]


def parse_span(text: str) -> timedelta:
    """A length of time such as 30m, 2h or 1d. Raises InvalidValueError."""
    found = _SPAN.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise InvalidValueError("duration", "must be like 30m, 2h or 1d")
    return timedelta(**{_UNITS[found[2].lower()]: int(found[1])})


# Requests
# ----------------------------------------------------------------------------------------------------------
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class Named(msgspec.Struct):
    id: Name


class Action(msgspec.Struct):
    action_id: Name
    value: str = ""
    selected_user: str = ""


class Place(msgspec.Struct):
    ts: str = ""
    thread_ts: str = ""


class Chosen(msgspec.Struct):
    value: str = ""


class Input(msgspec.Struct):
    value: str | None = None
    selected_option: Chosen | None = None

    @property
    def text(self) -> str:
        return self.selected_option.value if self.selected_option is not None else self.value or ""


class State(msgspec.Struct):
    values: dict[str, dict[str, Input]] = {}


class Dialog(msgspec.Struct):
    callback_id: str = ""
    private_metadata: str = ""
    state: State = msgspec.field(default_factory=State)

    def typed(self, name: str) -> str:
        """Text or choice in the input of that name."""
        return next((one.text for one in self.state.values.get(name, {}).values()), "")


class Interaction(msgspec.Struct):
    """A pressed button, a choice of a menu or a dialog that was sent."""

    type: str
    user: Named
    trigger_id: str = ""
    channel: Named | None = None
    message: Place | None = None
    actions: list[Action] = []
    view: Dialog | None = None


class ChatEvent(msgspec.Struct):
    type: str
    user: str = ""
    bot_id: str = ""
    subtype: str = ""
    text: str = ""
    channel: str = ""
    ts: str = ""
    thread_ts: str = ""

    @property
    def is_comment(self) -> bool:
        """Whether a person wrote it in a thread; edits, joins and messages of programs have a subtype or a bot."""
        return (
            self.type == "message"
            and bool(self.thread_ts and self.user)
            and not (self.subtype or self.bot_id)
        )


class EventRequest(msgspec.Struct):
    type: str
    challenge: str = ""
    event_id: str = ""
    event: ChatEvent | None = None


class TypedRequest(msgspec.Struct):
    """A slash command as its form has it."""

    user_id: Name
    text: str = ""
    user_name: str = ""


ChatRequest = Interaction | EventRequest | TypedRequest
_READERS: Final = {kind: msgspec.json.Decoder(kind) for kind in (Interaction, EventRequest)}


def read_request(form: Mapping[str, str] | None, body: bytes) -> ChatRequest:
    """A request of Slack: `form` is its decoded form, or None for a JSON body. Raises InvalidValueError."""
    try:
        if form is None:
            return _READERS[EventRequest].decode(body)  # type: ignore[return-value]
        if "payload" in form:
            return _READERS[Interaction].decode(form["payload"])  # type: ignore[return-value]
        return msgspec.convert(dict(form), TypedRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidValueError("request", f"is not a request of Slack: {error}") from None


# Dialogs
# ----------------------------------------------------------------------------------------------------------
SPANS: Final = (
    ("30m", "30 minutes"),
    ("2h", "2 hours"),
    ("8h", "8 hours"),
    ("1d", "1 day"),
    ("7d", "7 days"),
)


def hand_over_dialog(it: Incident, teams: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """A dialog that asks for a team (slug and name) and a reason."""
    others = [(slug, name) for slug, name in teams if slug != it.team][:OPTIONS_LIMIT]
    return _dialog(
        "hand_over",
        it,
        "Hand over",
        [_menu("team", "Team", others), _line("reason", "Reason", optional=False)],
    )


def silence_dialog(it: Incident, matchers: str) -> dict[str, Any]:
    """A dialog that asks for a length and a reason, and shows which alerts the silence matches."""
    shown = _section(f"Suppresses notifications of all alerts that match:\n```{escaped(matchers)}```")
    return _dialog(
        "silence",
        it,
        "Silence",
        [shown, _menu("duration", "Duration", SPANS), _line("reason", "Reason", optional=True)],
    )


def incident_of(dialog: Dialog) -> str:
    """The id of the incident that a dialog is about. Raises InvalidValueError."""
    try:
        return str(json.loads(dialog.private_metadata)["incident"])
    except (ValueError, KeyError, TypeError):
        raise InvalidValueError("request", "is a dialog without an incident") from None


def _dialog(name: str, it: Incident, title: str, blocks: Sequence[Block]) -> dict[str, Any]:
    return {
        "type": "modal",
        "callback_id": name,
        "private_metadata": json.dumps({"incident": it.id}),
        "title": {"type": "plain_text", "text": cut(f"{title} #{it.number}", 24)},
        "submit": {"type": "plain_text", "text": title},
        "close": {"type": "plain_text", "text": "Cancel"},
        "blocks": list(blocks),
    }


def _menu(name: str, label: str, options: Sequence[tuple[str, str]]) -> Block:
    shown = [
        {"text": {"type": "plain_text", "text": cut(text, 75)}, "value": value} for value, text in options
    ]
    return {
        "type": "input",
        "block_id": name,
        "label": {"type": "plain_text", "text": label},
        "element": {"type": "static_select", "action_id": name, "options": shown},
    }


def _line(name: str, label: str, *, optional: bool) -> Block:
    return {
        "type": "input",
        "block_id": name,
        "optional": optional,
        "label": {"type": "plain_text", "text": label},
        "element": {"type": "plain_text_input", "action_id": name, "max_length": 2_000},
    }


# Rooms and the app
# ----------------------------------------------------------------------------------------------------------
def room_for(team: str, severity: Severity, rooms: Mapping[str, str], default: str, least: Severity) -> str:
    """The channel of a team's incidents: its own, else the default one; empty where the severity is below `least`."""
    return "" if is_worse(least, severity) else rooms.get(team, default)


def manifest(base_url: str, name: str) -> dict[str, Any]:
    """The manifest of the Slack app (https://docs.slack.dev/app-manifests) for a workspace of that name."""
    url = f"{base_url}/chat/slack/{name}"
    scopes = ["chat:write", "chat:write.public", "commands", "channels:history", "groups:history"]
    return {
        "display_information": {
            "name": "Dossier",
            "description": "Incidents: acknowledge, assign, hand over, silence",
        },
        "features": {
            "bot_user": {"display_name": "Dossier", "always_online": True},
            "slash_commands": [
                {
                    "command": "/dossier",
                    "url": url,
                    "description": "Incidents and people on call",
                    "usage_hint": "who | list | ack 12 | silence 12 2h | help",
                    "should_escape": False,
                }
            ],
        },
        "oauth_config": {"scopes": {"bot": scopes}},
        "settings": {
            "event_subscriptions": {"request_url": url, "bot_events": ["message.channels", "message.groups"]},
            "interactivity": {"is_enabled": True, "request_url": url},
            "org_deploy_enabled": False,
            "socket_mode_enabled": False,
            "token_rotation_enabled": False,
        },
    }
