"""Requests of a Mattermost server: checked, carried out once in the name of the linked person, and answered.

A command carries the command's token, a button the secret of `incidents.chat.mattermost`. Both carry a `trigger_id`
with account and time: at most five minutes old, and taken once. What is refused for that is on the audit, once an hour
for each reason. A button that expired or was used is known to be ours: its refusal is an answer that the person sees.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl

from django.core import signing
from django.db import transaction
from django.utils.crypto import constant_time_compare

from incidents import commands
from incidents.chat.mattermost import BUTTON_LASTS, Button, read_button
from incidents.chat.models import ChatMessage, ChatWorkspace
from incidents.chat.requests import (
    PROBLEMS,
    ChatReply,
    ChatRequestRefusedError,
    caller_of,
    is_new,
    note_refusal,
    problem,
    refused,
    silence,
    typed,
    workspace_of,
)
from incidents.domain import mattermost
from incidents.domain.mattermost import Command, Press
from incidents.domain.values import InvalidValueError
from ingest.queries import now_utc

OLDEST: Final = 300.0
"""Seconds between the request and its `trigger_id`."""
HANDED_OVER: Final = "handed over from chat"


def answer(name: str, content_type: str, body: bytes) -> ChatReply:
    """Answer to a request of the workspace `name`, after it was carried out. Raises ChatRequestRefusedError."""
    workspace = workspace_of(name, ChatWorkspace.Platform.MATTERMOST)
    try:
        form = None if content_type.startswith("application/json") else dict(parse_qsl(body.decode()))
        request = mattermost.read_request(form, body)
    except UnicodeDecodeError:
        note_refusal(workspace, "malformed")
        raise ChatRequestRefusedError(400, "The request is not UTF-8.") from None
    except InvalidValueError as error:  # without `user_id`, for one
        note_refusal(workspace, "malformed")
        raise ChatRequestRefusedError(400, f"The {error.field} {error.reason}.") from None
    if isinstance(request, Command):
        _check_token(workspace, request)
        id_ = _taken(workspace, request)
        text = typed(workspace, request.text, request, id_)
        return ChatReply({"response_type": "ephemeral", "text": text, "skip_slack_parsing": True})
    try:
        button = _button(workspace, request)
    except signing.SignatureExpired:
        note_refusal(workspace, "expired")
        return _private(
            f"Not done: this button expired after {BUTTON_LASTS.days} days; use /dossier or the link."
        )
    text = _pressed(workspace, request, button, _taken(workspace, request))
    return _private(text) if text else ChatReply({})


def _private(text: str) -> ChatReply:
    """An answer that only this person sees."""
    return ChatReply({"ephemeral_text": text, "skip_slack_parsing": True})


# Proofs
# ----------------------------------------------------------------------------------------------------------
def _check_token(workspace: ChatWorkspace, request: Command) -> None:
    if not request.token:
        raise refused(workspace, "unsigned", "The request has no token of the slash command.")
    if not constant_time_compare(request.token, workspace.signing_secret):
        raise refused(workspace, "forged", "The token is not that of this workspace's slash command.")


def _button(workspace: ChatWorkspace, request: Press) -> Button:
    """Raises SignatureExpired, ChatRequestRefusedError."""
    if not request.context.button:
        raise refused(workspace, "unsigned", "The request has no secret of a button.")
    try:
        button = read_button(request.context.button)
    except signing.SignatureExpired:
        raise
    except signing.BadSignature:
        raise refused(workspace, "forged", "The button was not made here.") from None
    if button.workspace != workspace.pk:
        raise refused(workspace, "forged", "The button is of another workspace.")
    return button


def _taken(workspace: ChatWorkspace, request: Press | Command) -> str:
    """The name of a request that is fresh and was not received before. Raises ChatRequestRefusedError."""
    try:
        trigger = mattermost.read_trigger(request.trigger_id)
    except InvalidValueError as error:
        raise refused(workspace, "unsigned", f"The {error.field} {error.reason}.") from None
    if trigger.user_id != request.user_id:
        raise refused(workspace, "forged", "The trigger_id is of another account.")
    if abs((now_utc() - trigger.at).total_seconds()) > OLDEST:
        raise refused(workspace, "expired", "The request is older than five minutes; compare the clocks.")
    if not is_new(workspace, f"trigger {trigger.id}"):
        note_refusal(workspace, "repeated")
        raise ChatRequestRefusedError(
            409, "This request was already received; each request is carried out once."
        )
    return trigger.id


# Buttons
# ----------------------------------------------------------------------------------------------------------
class _UsedError(Exception):
    """The button did its work before."""


def _pressed(workspace: ChatWorkspace, request: Press, button: Button, id_: str) -> str:
    """Text for the person, after the button's action was carried out; empty where the message says it all. A button
    whose action was refused can be pressed again."""
    try:
        with transaction.atomic():
            if not is_new(workspace, f"button {button.use}"):
                raise _UsedError
            return _done(workspace, request, button, id_)
    except _UsedError:
        note_refusal(workspace, "repeated")
        return "Not done: this button was used before; the message shows the incident as it is now."
    except PROBLEMS as error:
        return problem(error)


def _done(workspace: ChatWorkspace, request: Press, button: Button, id_: str) -> str:
    caller = caller_of(workspace, request.user_id, id_)
    shown = ChatMessage.objects.filter(
        workspace=workspace, channel=request.channel_id, ts=request.post_id, incident=button.incident
    )
    if not shown.exists():
        raise InvalidValueError("message", "is not that of this incident")
    shown.update(digest="")  # the next change gives it new buttons, even one that shows the same as before
    chosen = request.context.selected_option
    match button.action:
        case "acknowledge":
            commands.acknowledge(button.incident, caller.context)
        case "assign":
            commands.assign(button.incident, caller.name, caller.context)
        case "handover":
            commands.hand_over(button.incident, chosen, HANDED_OVER, caller.context)
        case "silence":
            matchers = silence(button.incident, chosen, "", caller)
            return f"Silenced for {chosen}: {mattermost.MARKUP.code(matchers)}."
    return ""
