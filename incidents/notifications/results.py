"""What became of messages: rows, and an event on each incident, in one transaction.

A result counts only for the attempt that it is of: if the lease ended and another process took the message up, the
number of attempts has moved on, and the late result is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from uuid import UUID

import structlog
from django.db import transaction

from incidents.domain.incident.notified import Outcome
from incidents.domain.notifications.responses import Reply
from incidents.domain.notifications.rules import Step, another_way
from incidents.domain.notifications.state import Done, GiveUp, Retry, Tried, after, is_stuck, outcome
from incidents.incident.bulk_sql import columns, insert
from incidents.incident.models import IncidentRow
from incidents.notifications.attempts import SENDING, planned
from incidents.notifications.models import OVER, Notification, NotificationDelivery
from incidents.notifications.recipients import people
from incidents.notifications.result_events import Notes, save_locked
from ingest.commands import in_halves, retrying

UNREADABLE = "(response not stored)"

log = structlog.get_logger("deliver")


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
    # First the calls, then their steps: whoever locks both does so in this order.
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
    tickets = IncidentRow.objects.filter(pk__in={row.incident for row in rows})
    return dict(tickets.values_list("pk", "number"))


def _record_end(
    one: NotificationDelivery, row: Notification, result: Result, now: datetime, notes: Notes
) -> None:
    one.lease_until = None
    match after(result.reply, one.attempts, now, result.jitter, over=row.about == OVER):
        case Done():
            one.state, one.ended_at, one.why = "sent", now, result.reply.why
            notes.add(row, one, "sent", result.reply.why, tickets=len(result.deliveries))
        case Retry(at, why):
            said = result.reply.kind == "unreadable" and one.why == why
            one.next_at, one.why = at, why
            if not said:  # it is tried every minute: told once on the incident
                notes.add(row, one, "failed", why, tickets=len(result.deliveries), until=at)
        case GiveUp(why):
            one.state, one.ended_at, one.why = "given_up", now, why
            notes.add(row, one, "given_up", why, tickets=len(result.deliveries))


def end(row: Notification, what: Outcome, why: str, now: datetime, notes: Notes) -> None:
    """The end of a call that the caller has locked, and saves. What was never sent is told on the incident."""
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
        if not soonest.held and soonest.next_at > now:
            NotificationDelivery.objects.filter(pk=soonest.pk, attempts=0, lease_until=None).update(
                next_at=now
            )
        return None
    if row.person is None:
        return None
    known = people([row.person]).get(row.person)
    method = None if known is None else another_way(known.person, [one.label for one in steps])
    if known is None or method is None:
        return None
    made = planned(row, [Step(method, now)], known, after=len(steps))
    insert(NotificationDelivery, [columns(one, SENDING) for one in made])
    return Tried(method.name, "waiting")


def _why(how: Outcome, steps: Sequence[NotificationDelivery]) -> str:
    if how == "given_up":
        tried = "; ".join(f"{one.label}: {one.why}" for one in steps)
        return f"all contact methods failed ({tried})"[:1000]
    return next((one.why for one in reversed(steps) if one.state == how), "")
