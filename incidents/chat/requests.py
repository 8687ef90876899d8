"""Requests of a chat service: checked, carried out once in the name of the linked person, and answered.

A request is taken by its signature alone (https://docs.slack.dev/authentication/verifying-requests-from-slack): at most
five minutes old, and once. What is refused for that is on the audit, once an hour for each reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction
from slack_sdk.signature import SignatureVerifier

from incidents import commands, queries
from incidents.chat import slack
from incidents.chat.commands import link_url, unlink
from incidents.chat.dispatcher import trace_of
from incidents.chat.errors import ChatError
from incidents.chat.models import ChatAccount, ChatMessage, ChatReceipt, ChatWorkspace
from incidents.chat.services import service_of
from incidents.domain import chat
from incidents.domain.chat import (
    Action,
    ChatRequest,
    EventRequest,
    Interaction,
    Markup,
    TypedCommand,
    TypedRequest,
)
from incidents.domain.incident.decide import CommandRefusedError
from incidents.domain.permissions import ForbiddenError
from incidents.domain.routing.rules import read_matchers
from incidents.domain.values import InvalidValueError
from incidents.incident.models import IncidentRow
from incidents.incident.repository import IncidentNotFoundError
from incidents.oncall.models import OnCallSchedule
from incidents.oncall.queries import ScheduleNotFoundError, find_schedule, on_call_status
from incidents.security.refusals import record_refusal
from incidents.suppression.silences import create_silence, matchers_in_common, nothing_in_common
from incidents.teams.models import Team
from ingest.queries import Context, now_utc

LARGEST: Final = 256 * 1024
"""Bytes of a body."""
REFUSALS: Final = "chat_request"
"""Kind of refused requests on the audit."""
SHOWN: Final = 10
"""Incidents that `list` shows."""
log = structlog.get_logger("chat")
NOT_LINKED: Final = "Your chat account is not linked to an account in Dossier. Type `/dossier link`."


class ChatRequestRefusedError(Exception):
    """The request does nothing: `status` for HTTP, and why as a sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The body of a 200; None for an empty one."""

    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ChatCaller:
    """The person of Dossier in whose name a request is carried out."""

    workspace: ChatWorkspace
    chat_user: str
    context: Context

    @property
    def name(self) -> str:
        return self.context.actor.removeprefix("user:")


class NotLinkedError(Exception):
    """The chat account acts for no active person."""


def answer(name: str, headers: Mapping[str, str], content_type: str, body: bytes) -> ChatReply:
    """Answer to a request of the workspace `name`, after it was carried out. `headers`: names in lower case. Raises
    ChatRequestRefusedError."""
    workspace = workspace_of(name, ChatWorkspace.Platform.SLACK)
    signature = _verified(workspace, headers, body)
    form = None if content_type.startswith("application/json") else dict(parse_qsl(body.decode()))
    try:
        request = chat.read_request(form, body)
    except InvalidValueError as error:
        raise ChatRequestRefusedError(400, f"The {error.field} {error.reason}.") from None
    if isinstance(request, EventRequest) and request.type == "url_verification":
        return ChatReply({"challenge": request.challenge[:200]})
    if not is_new(workspace, f"signature {signature[-64:]}"):
        note_refusal(workspace, "repeated")
        raise ChatRequestRefusedError(
            409, "This request was already received; each request is carried out once."
        )
    return _carried_out(workspace, request, signature[-16:])


def workspace_of(name: str, platform: str) -> ChatWorkspace:
    """The workspace that requests of `name` are for. Raises ChatRequestRefusedError."""
    workspace = ChatWorkspace.objects.filter(name=name, platform=platform, active=True).first()
    if workspace is None:
        raise ChatRequestRefusedError(404, "There is no such workspace, or it is switched off.")
    if not workspace.readable:
        raise ChatRequestRefusedError(
            503, "The secrets of this workspace cannot be decrypted with this DOSSIER_SECRET_KEY."
        )
    return workspace


def _verified(workspace: ChatWorkspace, headers: Mapping[str, str], body: bytes) -> str:
    """The signature, where it is right. Raises ChatRequestRefusedError."""
    sent, signature = headers.get("x-slack-request-timestamp", ""), headers.get("x-slack-signature", "")
    if not (sent and signature):
        raise refused(
            workspace, "unsigned", "The request has no X-Slack-Signature and X-Slack-Request-Timestamp."
        )
    if not sent.isdigit() or len(sent) > 12 or abs(now_utc().timestamp() - int(sent)) > 300:
        raise refused(workspace, "expired", "The request is older than five minutes; compare the clocks.")
    try:
        is_signed = SignatureVerifier(workspace.signing_secret).is_valid(body, sent, signature)
    except UnicodeDecodeError:
        raise ChatRequestRefusedError(400, "The request is not UTF-8.") from None
    if not is_signed:
        raise refused(workspace, "forged", "The signature is not that of this workspace's signing secret.")
    return signature


def refused(workspace: ChatWorkspace, reason: str, why: str) -> ChatRequestRefusedError:
    note_refusal(workspace, reason)
    return ChatRequestRefusedError(401, why)


def note_refusal(workspace: ChatWorkspace, reason: str) -> None:
    key, about = f"{workspace.name}/{reason}", {"workspace": workspace.name}
    record_refusal(REFUSALS, key, reason, "system:chat", about)


def is_new(workspace: ChatWorkspace, key: str) -> bool:
    try:
        with transaction.atomic():
            ChatReceipt.objects.create(workspace=workspace, key=key[:100], at=now_utc())
    except IntegrityError:
        return False
    return True


def _carried_out(workspace: ChatWorkspace, request: ChatRequest, id_: str) -> ChatReply:
    match request:
        case EventRequest():
            return _event(workspace, request)
        case TypedRequest():
            return _private(typed(workspace, chat.plain_text(request.text), request, id_))
        case _ if request.type == "view_submission":
            return _dialog_sent(workspace, request, id_)
        case _ if request.type == "block_actions":
            return _pressed(workspace, request, id_)
    return ChatReply()


def _private(text: str) -> ChatReply:
    return ChatReply({"response_type": "ephemeral", "text": text})


def caller_of(workspace: ChatWorkspace, chat_user: str, request: str) -> ChatCaller:
    """Raises NotLinkedError for an account that acts for no active person."""
    rows = ChatAccount.objects.select_related("user").filter(workspace=workspace, chat_user=chat_user)
    found = rows.filter(user__is_active=True).first()
    if found is None:
        note_refusal(workspace, "account not linked")
        raise NotLinkedError
    context = Context(f"user:{found.user.get_username()}", trace=trace_of(workspace, request))
    return ChatCaller(workspace, chat_user, context)


def problem(error: Exception) -> str:
    """Reason why a command was refused, as a sentence."""
    match error:
        case NotLinkedError():
            return NOT_LINKED
        case InvalidValueError():
            return f"Not done: {error.field} {error.reason}."
        case CommandRefusedError() | ForbiddenError():
            return f"Not done: {error.reason}."
        case _:
            return f"Not done: {error}."


PROBLEMS: Final = (
    NotLinkedError,
    InvalidValueError,
    CommandRefusedError,
    ForbiddenError,
    IncidentNotFoundError,
    ScheduleNotFoundError,
    ChatError,
)


# Threads
# ----------------------------------------------------------------------------------------------------------
def _event(workspace: ChatWorkspace, request: EventRequest) -> ChatReply:
    """A message in the thread of an incident is a comment of the linked person."""
    event = request.event
    if event is None or not event.is_comment or not event.text.strip():
        return ChatReply()
    message = ChatMessage.objects.filter(
        workspace=workspace, channel=event.channel, ts=event.thread_ts
    ).first()
    if message is None:
        return ChatReply()
    try:
        caller = caller_of(workspace, event.user, event.ts)
        with transaction.atomic():  # a request that is sent again after a failure here is carried out then
            if is_new(workspace, f"event {request.event_id or event.ts}"):
                commands.comment(str(message.incident), _typed(workspace, event.text), caller.context)
    except PROBLEMS as error:
        _tell(workspace, event.channel, event.user, f"Not on the timeline. {problem(error)}", event.thread_ts)
    return ChatReply()


def _typed(workspace: ChatWorkspace, text: str) -> str:
    """Text of a message, with the names of Dossier for linked accounts."""
    linked = ChatAccount.objects.filter(workspace=workspace).values_list("chat_user", "user__username")
    names: dict[str, str] = dict(linked)
    return chat.plain_text(text, lambda account: names.get(account, account))


def _tell(workspace: ChatWorkspace, channel: str, chat_user: str, text: str, thread: str = "") -> None:
    """A line that only this person sees; without it the request has done what it did all the same."""
    place = {"thread_ts": thread} if thread else {}
    try:
        slack.call(workspace, "chat.postEphemeral", channel=channel, user=chat_user, text=text, **place)
    except ChatError as error:
        log.warning("reply not sent", workspace=workspace.name, error=str(error))


# Buttons
# ----------------------------------------------------------------------------------------------------------
def _pressed(workspace: ChatWorkspace, request: Interaction, id_: str) -> ChatReply:
    channel = "" if request.channel is None else request.channel.id
    for action in request.actions[:1]:
        if action.action_id == "open":
            continue  # a link, which the chat opens by itself
        try:
            _act(caller_of(workspace, request.user.id, id_), action, request)
        except PROBLEMS as error:
            _tell(workspace, channel, request.user.id, problem(error))
    return ChatReply()


def _act(caller: ChatCaller, action: Action, request: Interaction) -> None:
    row = _row_of(caller.workspace, action, request)
    id_ = str(row.pk)
    match action.action_id:
        case "acknowledge":
            commands.acknowledge(id_, caller.context)
        case "assign":
            commands.assign(id_, _person(caller.workspace, action.selected_user), caller.context)
        case "hand_over":
            teams = list(Team.objects.order_by("name").values_list("slug", "name"))
            _open(caller, request, chat.hand_over_dialog(queries.get(id_).incident, teams))
        case "silence":
            _open(caller, request, chat.silence_dialog(queries.get(id_).incident, _matchers(id_)))
        case _:
            raise InvalidValueError("button", "is not one of Dossier; the message may be of an older version")


def _row_of(workspace: ChatWorkspace, action: Action, request: Interaction) -> IncidentRow:
    """The incident of the message whose button was pressed. A value that somebody else wrote names none."""
    channel, message = request.channel, request.message
    shown = ChatMessage.objects.filter(
        workspace=workspace,
        channel="" if channel is None else channel.id,
        ts="" if message is None else message.ts,
    ).first()
    row = None if shown is None else IncidentRow.objects.filter(pk=shown.incident).first()
    if row is None or action.value not in ("", str(row.pk)):
        raise InvalidValueError("message", "is not that of an incident")
    return row


def _person(workspace: ChatWorkspace, chat_user: str) -> str:
    rows = ChatAccount.objects.select_related("user").filter(workspace=workspace, chat_user=chat_user)
    if (found := rows.first()) is None:
        raise InvalidValueError("person", "has no linked account in Dossier; they type `/dossier link`")
    return found.user.get_username()


def _matchers(incident_id: str) -> str:
    """Matchers of the labels that its firing alerts share, one a line."""
    if not (found := matchers_in_common(incident_id)):
        raise InvalidValueError(
            "silence", f"needs what all firing alerts have in common: {nothing_in_common(incident_id)}"
        )
    return found


def _open(caller: ChatCaller, request: Interaction, dialog: Mapping[str, Any]) -> None:
    slack.call(caller.workspace, "views.open", trigger_id=request.trigger_id, view=dialog)


# Dialogs
# ----------------------------------------------------------------------------------------------------------
_INPUTS: Final = {"team": "team", "reason": "reason", "duration": "duration"}


def _dialog_sent(workspace: ChatWorkspace, request: Interaction, id_: str) -> ChatReply:
    """Closes the dialog, or shows at its input why not."""
    dialog = request.view
    if dialog is None or dialog.callback_id not in ("hand_over", "silence"):
        return ChatReply()
    first = "team" if dialog.callback_id == "hand_over" else "duration"
    try:
        incident = str(queries.get(chat.incident_of(dialog)).incident.id)
        caller = caller_of(workspace, request.user.id, id_)
        if dialog.callback_id == "hand_over":
            commands.hand_over(incident, dialog.typed("team"), dialog.typed("reason"), caller.context)
        else:
            silence(incident, dialog.typed("duration"), dialog.typed("reason"), caller)
    except InvalidValueError as error:
        place = error.field if dialog.typed(error.field) or error.field in _INPUTS else first
        return _invalid(place, f"{error.field.capitalize()} {error.reason}.")
    except PROBLEMS as error:
        return _invalid(first, problem(error))
    return ChatReply()


def _invalid(place: str, why: str) -> ChatReply:
    return ChatReply({"response_action": "errors", "errors": {place: why[:2_000]}})


def silence(incident: str, duration: str, reason: str, caller: ChatCaller) -> str:
    """Silences what the firing alerts share; the matchers as text."""
    ends = now_utc() + chat.parse_span(duration)
    found = _matchers(incident)
    number = queries.get(incident).incident.number
    comment = f"#{number}: {reason.strip() or 'silenced from chat'}"
    create_silence(
        read_matchers(found), None, ends, caller.name, comment, caller.context, incidents=(incident,)
    )
    return found.replace("\n", ", ")


# Typed commands
# ----------------------------------------------------------------------------------------------------------
def typed(workspace: ChatWorkspace, text: str, request: TypedRequest, id_: str) -> str:
    """The answer to a command, after it was carried out; `text` is what was typed."""
    try:
        command = chat.parse_command(text)
        if command.verb == "help":
            return chat.HELP
        if command.verb == "link":
            url = link_url(workspace, request.user_id, request.user_name)
            return f"Open this link within 15 minutes and sign in: {url}"
        return _done(command, caller_of(workspace, request.user_id, id_))
    except PROBLEMS as error:
        return problem(error)


def _done(command: TypedCommand, caller: ChatCaller) -> str:
    """Answer to a command, after it was carried out. Raises one of PROBLEMS."""
    markup = service_of(caller.workspace).MARKUP
    match command.verb:
        case "unlink":
            account = ChatAccount.objects.get(workspace=caller.workspace, chat_user=caller.chat_user)
            unlink(account, caller.context)
            return "Your chat account is no longer linked."
        case "who":
            return _on_call_text(command.rest, markup)
        case "list":
            return _list(markup)
    id_ = queries.get(str(command.number)).incident.id
    where = _link(command.number or 0, markup)
    match command.verb:
        case "ack":
            commands.acknowledge(id_, caller.context)
            return f"{where} acknowledged."
        case "assign":
            owner = caller.name if command.rest in ("", "me") else command.rest.removeprefix("@")
            commands.assign(id_, owner, caller.context)
            return f"{where} assigned to {markup.escaped(owner)}."
        case "handover":
            team, _, reason = command.rest.partition(" ")
            commands.hand_over(id_, team, reason, caller.context)
            return f"{where} handed over to {markup.escaped(team)}."
        case "silence":
            duration, _, reason = command.rest.partition(" ")
            matchers = silence(id_, duration, reason, caller)
            return f"{where} silenced for {duration}: {markup.code(matchers)}."
    found = queries.get(id_).incident
    facts = f"{found.severity}, {found.state}, team {found.team}, owner {found.owner or 'none'}"
    return f"{where} {markup.escaped(found.title)}\n{facts}"


def _link(number: int, markup: Markup) -> str:
    return markup.link(f"{settings.PUBLIC_URL}/incidents/{number}", f"#{number}")


def _on_call_text(schedule: str, markup: Markup) -> str:
    now = now_utc()
    rows = [find_schedule(schedule)] if schedule else list(OnCallSchedule.objects.all())
    lines = []
    for row in rows:
        status = on_call_status(row, now)
        until = "" if status.until is None else f" until {status.until:%Y-%m-%d %H:%M} UTC"
        then = "" if status.then is None else f", then {status.then}"
        person = "no person" if status.person is None else markup.bold(markup.escaped(status.person))
        lines.append(f"{markup.escaped(row.slug)}: {person}{until}{then}")
    return "\n".join(lines) or "No on-call schedules."


def _list(markup: Markup) -> str:
    rows = IncidentRow.objects.exclude(state="resolved").filter(merged_into=None).order_by("-number")
    lines = [
        f"{_link(row.number, markup)} {row.severity}, {row.state}, {row.team}: {markup.escaped(row.title[:150])}"
        for row in rows[:SHOWN]
    ]
    more = rows.count() - len(lines)
    tail = [f"and {more} more: {settings.PUBLIC_URL}"] if more > 0 else []
    return "\n".join([*lines, *tail]) or "No unresolved incidents."
