"""Messages of incidents in chat: one an incident and channel, updated as it changes, its thread the timeline.

Reads the log for each workspace from its own place, as webhooks do. A message shows the incident as it stands, so
several events are one update; a thread has a reply for each event that concerns people. The place is written down after
sending: a process that dies between the two may repeat one message or reply.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from incidents.chat.errors import ChatError
from incidents.chat.mattermost import BUTTON_LASTS
from incidents.chat.models import ChatMessage, ChatReceipt, ChatWorkspace
from incidents.chat.services import service_of
from incidents.domain import chat
from incidents.domain.incident.evolve import EVENT_TYPES
from incidents.domain.incident.state import Incident
from incidents.domain.values import check_severity
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.worker.parts import Failure, attempt, try_lock, unlock
from ingest.commands import database_is_lost
from ingest.queries import Event, now_utc, read_all, watermark

BATCH: Final = 200
"""Events of the log that a round takes on."""
IDLE: Final = 0.5
"""Seconds between looks when nothing was due."""
PAUSES: Final = (2.0, 5.0, 15.0, 60.0, 300.0)
"""Seconds after the first, second, … failure in a row."""
MOST_NEW: Final = 60
"""New messages of a workspace within `NEW_WITHIN`; a storm beyond that is one message with a link to the inbox."""
NEW_WITHIN: Final = timedelta(minutes=10)
FAR: Final = 1_000
"""Transactions without an event of an incident after which the place is written down all the same, so that no round
reads all of them again."""
RECEIPTS_FOR: Final = BUTTON_LASTS + timedelta(days=1)
"""Longer than any request is taken."""

log = structlog.get_logger("chat")


def run(stop: threading.Event, idle: float = IDLE) -> None:
    """Send until `stop` is set. Survives a database that goes away."""
    while not stop.is_set():
        try:
            did = step(now_utc())
        except (OperationalError, InterfaceError) as error:
            log.warning("database away", error=str(error).strip())
            connection.close()
            did = 0
        if not did:
            stop.wait(idle)


def step(now: datetime) -> int:
    """One round of each workspace that is due and that no other process sends for; how many events it took on."""
    did = 0
    for workspace in ChatWorkspace.objects.filter(active=True):
        if workspace.retry_at is not None and now < workspace.retry_at <= now + timedelta(hours=1):
            continue
        with _locked(workspace) as held:
            if not held:
                continue
            workspace.refresh_from_db()
            done = attempt(lambda row=workspace: _round(row, now))  # type: ignore[misc]
            if not isinstance(done, Failure):
                did += done
            elif database_is_lost(done.error):
                raise done.error
            else:
                _failed(workspace, done.error, now)
    return did


def _round(workspace: ChatWorkspace, now: datetime) -> int:
    mark = watermark()
    events = read_all(workspace.place, BATCH, EVENT_TYPES, upto=mark)
    reached = events[-1].position if len(events) == BATCH else max(mark, workspace.place)
    if events:
        workspace.error = ""
    for stream, found in _by_stream(events).items():
        _show(workspace, stream, found, now)
    place = workspace.place
    is_far = reached.epoch > place.epoch or reached.txid - place.txid > FAR
    if events or workspace.failures or is_far:
        ChatReceipt.objects.filter(workspace=workspace, at__lt=now - RECEIPTS_FOR).delete()
        _move(workspace, str(reached), now if events else workspace.last_success)
    return len(events)


def _move(workspace: ChatWorkspace, reached: str, last_success: datetime | None) -> None:
    """Write down the place of a workspace that was not changed meanwhile."""
    ChatWorkspace.objects.filter(pk=workspace.pk, position=workspace.position).update(
        position=reached, failures=0, retry_at=None, error=workspace.error, last_success=last_success
    )


def _by_stream(events: Sequence[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in events:
        found.setdefault(event.stream, []).append(event)
    return found


def _show(workspace: ChatWorkspace, stream: str, events: Sequence[Event], now: datetime) -> None:
    """Post or update the messages of an incident, then reply in their threads. A channel that refuses is noted and
    passed over: the other incidents go on."""
    row = IncidentRow.objects.filter(pk=UUID(stream.partition("/")[2])).first()
    if row is None:
        return
    state = state_of(row)
    try:
        for message in _messages(workspace, state, events, now):
            _reply(workspace, message, events)
    except ChatError as error:
        if error.meaning in ("later", "token"):
            raise
        workspace.error = f"#{state.number} not shown: {error}"[:1_000]
        log.warning("incident not shown", workspace=workspace.name, incident=state.number, error=str(error))


def _messages(
    workspace: ChatWorkspace, state: Incident, events: Sequence[Event], now: datetime
) -> list[ChatMessage]:
    """Those of the incident, as it stands now; one is posted where it has none in the channel of its team."""
    url = f"{settings.PUBLIC_URL}/incidents/{state.number}"
    service = service_of(workspace)
    content = service.content(state, url)
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    shown = list(ChatMessage.objects.filter(workspace=workspace, incident=state.id).order_by("pk"))
    for message in list(shown):
        if message.digest != digest and not _update(workspace, message, content, digest):
            shown.remove(message)
    room = chat.room_for(
        state.team,
        state.severity,
        workspace.rooms,
        workspace.channel,
        check_severity("least", workspace.least),
    )
    is_over = state.state == "resolved" or state.merged_into is not None
    if room and not is_over and all(one.channel != room for one in shown) and _may_post(workspace, room, now):
        ts = service.post(workspace, room, state.id, content)
        shown.append(
            ChatMessage.objects.create(
                workspace=workspace,
                incident=state.id,
                channel=room,
                ts=ts,
                version=events[0].version if events[0].version == 1 else events[0].version - 1,
                digest=digest,
                posted_at=now,
            )
        )
    return shown


def _update(workspace: ChatWorkspace, message: ChatMessage, content: Any, digest: str) -> bool:
    """Whether the message is there still; one that was deleted in the chat is forgotten."""
    try:
        service_of(workspace).update(workspace, message.channel, message.ts, str(message.incident), content)
    except ChatError as error:
        if error.meaning != "message":
            raise
        message.delete()
        return False
    message.digest = digest
    message.save(update_fields=["digest"])
    return True


def _may_post(workspace: ChatWorkspace, room: str, now: datetime) -> bool:
    """Whether a new incident has a message of its own; the first that has none in a storm is announced."""
    if workspace.limited_until is not None and now < workspace.limited_until <= now + NEW_WITHIN:
        return False
    if workspace.messages.filter(posted_at__gt=now - NEW_WITHIN).count() < MOST_NEW:
        return True
    workspace.limited_until = now + NEW_WITHIN
    workspace.save(update_fields=["limited_until"])
    text = (
        f"More than {MOST_NEW} incidents in {int(NEW_WITHIN.total_seconds() // 60)} minutes. New ones are in the inbox"
        f" only for as long: {settings.PUBLIC_URL}"
    )
    service_of(workspace).say(workspace, room, text)
    return False


def _reply(workspace: ChatWorkspace, message: ChatMessage, events: Sequence[Event]) -> None:
    service = service_of(workspace)
    for event in events:
        if event.version <= message.version:
            continue
        text = None if _is_own_comment(workspace, event) else chat.reply(event, service.MARKUP)
        if text is not None:
            service.say(workspace, message.channel, text, message.ts)
        message.version = event.version
        message.save(update_fields=["version"])


def trace_of(workspace: ChatWorkspace, request: str) -> str:
    """The trace of what a request of the chat does, by which its own comments are known."""
    return f"slack:{workspace.name}:{request}"


def _is_own_comment(workspace: ChatWorkspace, event: Event) -> bool:
    """Whether it was written in this workspace, where it stands in the thread already."""
    return event.type == "incident.commented" and (event.trace or "").startswith(trace_of(workspace, ""))


def _failed(workspace: ChatWorkspace, error: Exception, now: datetime) -> None:
    """Left alone for a while, its place kept: what it missed is shown later."""
    wait = PAUSES[min(workspace.failures, len(PAUSES) - 1)]
    if isinstance(error, ChatError):
        wait = max(wait, min(error.wait or 0.0, PAUSES[-1]))
        why = str(error)
        log.warning("workspace failed", workspace=workspace.name, error=why, seconds=wait)
    else:
        why = f"{type(error).__name__}: {error}"
        log.error("workspace failed", workspace=workspace.name, exc_info=error)
    ChatWorkspace.objects.filter(pk=workspace.pk, position=workspace.position).update(
        failures=workspace.failures + 1, retry_at=now + timedelta(seconds=wait), error=why[:1_000]
    )


@contextmanager
def _locked(workspace: ChatWorkspace) -> Iterator[bool]:
    """Whether this process may send for a workspace: one at a time does."""
    name = f"chat {workspace.pk}"
    held = try_lock(name)
    try:
        yield held
    finally:
        if held and connection.connection is not None:
            unlock(name)
