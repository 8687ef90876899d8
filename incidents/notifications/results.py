"""Results of messages: rows of the attempts, and events on their incidents, in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

import structlog
from django.db import models, transaction

from incidents.domain.incident.commands import NoteNotified, Outcome
from incidents.domain.notifications.delivery import (
    Done,
    GiveUp,
    Reply,
    Retry,
    Step,
    Tried,
    after,
    another_way,
    is_stuck,
    outcome,
    refused,
)
from incidents.domain.notifications.push import read_subscription
from incidents.domain.values import InvalidValueError
from incidents.incident.models import IncidentRow
from incidents.incident.repository import LockedCommand, record_together
from incidents.notifications.models import OVER, ContactMethod, Notification, NotificationDelivery
from incidents.notifications.recipients import Reachable, people
from ingest.commands import in_halves, retrying
from ingest.db.database import columns, insert, update
from ingest.queries import Context

# Attempts
# ----------------------------------------------------------------------------------------------------------
SENDING: Final = (
    "notification_id",
    "place",
    "source",
    "method_id",
    "label",
    "kind",
    "queue",
    "at",
    "next_at",
    "attempts",
    "state",
    "delay_reason",
    "why",
)
"""The columns of a step that is new; the others are empty."""


def planned(
    row: Notification, found: Sequence[Step], known: Reachable, after: int = 0
) -> list[NotificationDelivery]:
    """Rows of steps, numbered on from `after`."""
    made = []
    for place, step in enumerate(found, start=after):
        method = known.rows.get(step.method.name) if step.method.source == "method" else None
        made.append(
            NotificationDelivery(
                notification=row,
                place=place,
                source=step.method.source,
                method=method,
                label=step.method.name,
                kind=step.method.kind,
                queue="email" if method is None else queue_key(method.kind, method.address),
                at=step.at,
                next_at=step.at,
            )
        )
    return made


def queue_key(kind: str, address: str) -> str:
    """Queue of an address, which shares its failures: all mail goes through one server; other addresses stand for
    themselves.

    Never holds a secret: the address of a service is one, and stands here as a hash.
    """
    if kind == "email":
        return "email"
    if kind in ("webhook", "teams"):
        return f"{kind} {_host(address)}"
    if kind in ("sms", "voice"):
        return f"twilio {kind}"
    if kind == "push":
        return f"push {_push_host(address)}"
    scheme = address.partition("://")[0][:30]
    return f"apprise {scheme} {hashlib.sha256(address.encode()).hexdigest()[:16]}"


def shown(kind: str, address: str) -> str:
    """Name for people of an address that has none."""
    if kind == "webhook":
        return f"webhook at {_host(address)}"
    return address.partition("://")[0][:30]


def _host(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "")[:200]
    except ValueError:
        return ""


def _push_host(address: str) -> str:
    try:
        return _host(read_subscription(address).endpoint)
    except InvalidValueError:
        return ""


def masked(row: ContactMethod) -> str:
    """Part of an address that may be shown: of a mail all of it, of a number its end, of a webhook, Teams or a push
    service the host, of a service its name."""
    if not row.address:
        return "cannot be decrypted: enter it again"
    if row.kind == "email":
        return row.address
    if row.kind in ("sms", "voice"):
        return f"…{row.address[-4:]}"
    if row.kind == "push":
        return _push_host(row.address)
    scheme, _, _ = row.address.partition("://")
    return f"{scheme[:30]}://{_host(row.address) if row.kind in ('webhook', 'teams') else ''}…"


# Result events
# ----------------------------------------------------------------------------------------------------------
ACTOR = "system:delivery"
log = structlog.get_logger("deliver")


class Notes:
    """Collected where something becomes of a call; `record` locks all their incidents, in the order of their
    numbers.
    """

    def __init__(self) -> None:
        self._of_incident: dict[UUID, list[tuple[Notification, NoteNotified]]] = {}

    def add(
        self,
        row: Notification,
        one: NotificationDelivery | None,
        what: Outcome,
        why: str,
        incidents: int = 1,
        until: datetime | None = None,
    ) -> None:
        """One event on the incident, after those that were added for it before."""
        command = NoteNotified(
            notification=row.key,
            person=row.person,
            method=None if one is None else one.label,
            kind=None if one is None else one.kind,
            outcome=what,
            why=why,
            reason=row.why,
            attempt=0 if one is None else one.attempts,
            incidents=incidents,
            until=until,
        )
        self._of_incident.setdefault(row.incident, []).append((row, command))

    def record(self) -> None:
        """In the caller's transaction. Raises StreamVersionError: try all of it again."""
        left = {pk: list(reversed(found)) for pk, found in self._of_incident.items()}
        incidents = IncidentRow.objects.filter(pk__in=left).order_by("number")
        rows = list(incidents.select_for_update())
        for lost in left.keys() - {row.pk for row in rows}:
            log.warning("no such incident", notification=left.pop(lost)[0][0].key, incident=str(lost))
        while rows:
            taken = [(row, *left[row.pk].pop()) for row in rows]
            record_together([LockedCommand(row, command, _context(call)) for row, call, command in taken])
            further = [pk for pk, found in left.items() if found]
            rows = list(incidents.filter(pk__in=further)) if further else []
        self._of_incident.clear()


def _context(call: Notification) -> Context:
    return Context(ACTOR, cause=call.cause, trace=call.trace)


def save_locked(rows: Sequence[models.Model], names: Sequence[str]) -> None:
    """Write some columns of rows of one model, which the caller has locked, with one statement."""
    if rows:
        update(type(rows[0]), [columns(row, ("id", *names)) for row in rows], "id")


# Results
# ----------------------------------------------------------------------------------------------------------
UNREADABLE = "(response not stored)"


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one message: `deliveries` are (key, attempt) of the rows that it was for."""

    deliveries: tuple[tuple[int, int], ...]
    reply: Reply
    jitter: float


def record_results(results: Sequence[Result], now: datetime) -> int:
    """Record what was answered; of how many rows it was the latest attempt.

    An answer that cannot be recorded as it is keeps no other from it, and is recorded without its words: a message
    whose answer is lost would be sent again.
    """
    failed: dict[Result, Exception] = {}
    done = in_halves(results, lambda part: retrying(partial(_record, part, now)), failed)
    for result, error in failed.items():
        log.error("a response cannot be stored unchanged", deliveries=result.deliveries, exc_info=error)
    plain = [replace(one, reply=replace(one.reply, why=UNREADABLE)) for one in failed]
    return done + sum(retrying(partial(_record, [one], now)) for one in plain)


@transaction.atomic
def _record(results: Sequence[Result], now: datetime) -> int:
    given = {(pk, attempt): result for result in results for pk, attempt in result.deliveries}
    keys = [pk for pk, _ in given]
    # Lock order: first the calls, then their steps.
    calls = (
        Notification.objects.filter(deliveries__in=keys)
        .order_by("pk")
        .values_list("pk", flat=True)
        .distinct()
    )
    locked = Notification.objects.filter(pk__in=list(calls)).order_by("pk").select_for_update()
    rows = {row.pk: row for row in locked}
    waiting = (
        NotificationDelivery.objects.filter(pk__in=keys, state="waiting").order_by("pk").select_for_update()
    )
    done = [one for one in waiting if (one.pk, one.attempts) in given]
    notes = Notes()
    for one in in_order(done, rows):
        result = given[(one.pk, one.attempts)]
        _record_end(one, rows[one.notification_id], result, now, notes)
    save_locked(done, ("lease_until", "state", "ended_at", "why", "next_at"))
    reconsider({one.notification_id for one in done}, rows, now, notes)
    notes.record()
    return len(done)


def in_order(
    deliveries: Iterable[NotificationDelivery], rows: Mapping[UUID, Notification]
) -> list[NotificationDelivery]:
    """By the numbers of their incidents."""
    numbers = numbers_of(rows.values())
    return sorted(deliveries, key=lambda one: numbers.get(rows[one.notification_id].incident, 0))


def numbers_of(rows: Iterable[Notification]) -> dict[UUID, int]:
    """By incident, of those that there are: an incident's row is wide, and seldom wanted whole."""
    incidents = IncidentRow.objects.filter(pk__in={row.incident for row in rows})
    return dict(incidents.values_list("pk", "number"))


def _record_end(
    one: NotificationDelivery, row: Notification, result: Result, now: datetime, notes: Notes
) -> None:
    one.lease_until = None
    reply = refused(one.receipt_error) if one.receipt_error and result.reply.kind == "taken" else result.reply
    match after(reply, one.attempts, now, result.jitter, over=row.about == OVER):
        case Done():
            one.state, one.ended_at, one.why = "sent", now, reply.why
            notes.add(row, one, "sent", reply.why, incidents=len(result.deliveries))
        case Retry(at, why):
            recorded = reply.kind == "unreadable" and one.why == why
            one.next_at, one.why = at, why
            if not recorded:  # retried every minute: recorded once on the incident
                notes.add(row, one, "failed", why, incidents=len(result.deliveries), until=at)
        case GiveUp(why):
            one.state, one.ended_at, one.why = "given_up", now, why
            notes.add(row, one, "given_up", why, incidents=len(result.deliveries))


def end(row: Notification, what: Outcome, why: str, now: datetime, notes: Notes) -> None:
    """The end of a call that the caller has locked, and saves. A call never sent is noted on the incident."""
    if what != "sent":
        notes.add(row, None, what, why)
    row.state, row.outcome, row.ended_at, row.ended_why = "done", what, now, why


def save_ended(rows: Sequence[Notification]) -> None:
    save_locked(rows, ("state", "outcome", "ended_at", "ended_why"))


def reconsider(
    changed: Iterable[UUID], rows: Mapping[UUID, Notification], now: datetime, notes: Notes
) -> None:
    """Whether calls, which the caller has locked, are over, or need their next method at once."""
    by_call: dict[UUID, list[NotificationDelivery]] = {pk: [] for pk in changed}
    for one in NotificationDelivery.objects.filter(notification__in=by_call).order_by("place"):
        by_call[one.notification_id].append(one)
    numbers = numbers_of(rows[pk] for pk in by_call)
    ended: list[Notification] = []
    for row in sorted((rows[pk] for pk in by_call), key=lambda row: numbers.get(row.incident, 0)):
        steps = by_call[row.pk]
        tried = [Tried(one.label, one.state, one.attempts) for one in steps]  # type: ignore[arg-type]
        if is_stuck(tried) and (further := _further(row, steps, now)) is not None:
            tried = [*tried, further]
        if (how := outcome(tried)) is not None:
            end(row, how, _why(how, steps), now, notes)
            ended.append(row)
    save_ended(ended)


def _further(row: Notification, steps: Sequence[NotificationDelivery], now: datetime) -> Tried | None:
    """The next method, due now: one that is planned for later, or one that no rule named. Returns a new one only."""
    untried = [one for one in steps if one.state == "waiting" and not one.attempts]
    if untried:
        soonest = min(untried, key=lambda one: one.next_at)
        if not soonest.delay_reason and soonest.next_at > now:
            NotificationDelivery.objects.filter(pk=soonest.pk, attempts=0, lease_until=None).update(
                next_at=now
            )
        return None
    if row.person is None:
        return None
    known = people([row.person]).get(row.person)
    if known is None:
        return None
    used = [one.label for one in steps]
    if row.about == OVER:  # no call only to say that it is over
        used += [one.name for one in known.person.methods if one.kind == "voice"]
    if (method := another_way(known.person, used)) is None:
        return None
    made = planned(row, [Step(method, now)], known, after=len(steps))
    insert(NotificationDelivery, [columns(one, SENDING) for one in made])
    return Tried(method.name, "waiting")


def _why(how: Outcome, steps: Sequence[NotificationDelivery]) -> str:
    if how == "given_up":
        tried = "; ".join(f"{one.label}: {one.why}" for one in steps)
        return f"all contact methods failed ({tried})"[:1000]
    return next((one.why for one in reversed(steps) if one.state == how), "")


# Receipts
# ----------------------------------------------------------------------------------------------------------
def record_receipt(message: UUID, why: str, delivered: bool, now: datetime) -> int:
    """Record the report of a provider about a message that it had accepted; the number of its deliveries.

    One that failed counts as given up, so that the next contact method is due at once; its call, which had ended as
    sent, goes on.
    """
    return retrying(partial(_record_receipt, message, why, delivered, now))


@transaction.atomic
def _record_receipt(message: UUID, why: str, delivered: bool, now: datetime) -> int:
    keys = Notification.objects.filter(deliveries__message=message).values_list("pk", flat=True)
    locked = Notification.objects.filter(pk__in=set(keys)).order_by("pk").select_for_update()
    rows = {row.pk: row for row in locked}
    steps = list(NotificationDelivery.objects.filter(message=message).order_by("pk").select_for_update())
    notes, reopened = Notes(), dict[UUID, Notification]()
    for one in in_order(steps, rows):
        row = rows[one.notification_id]
        if delivered:
            one.receipt_error, one.why = "", why
        elif one.state == "sent":
            one.state, one.ended_at, one.why = "given_up", now, why
            notes.add(row, one, "given_up", why, incidents=len(steps))
            if row.about != OVER:
                row.state, row.outcome, row.ended_at, row.ended_why = "going", "", None, ""
                reopened[row.pk] = row
        elif one.state == "waiting":
            one.receipt_error = why
    save_locked(steps, ("state", "ended_at", "why", "receipt_error"))
    save_ended(list(reopened.values()))
    reconsider(set(reopened), rows, now, notes)
    notes.record()
    return len(steps)
