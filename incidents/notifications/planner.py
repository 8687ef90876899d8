"""Calls become steps: one row for each method that is to be tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from incidents.domain.notifications.rules import steps
from incidents.domain.values import Severity
from incidents.incident.bulk_sql import columns, insert
from incidents.incident.models import IncidentRow
from incidents.notifications.attempts import SENDING, planned, queue_key, shown
from incidents.notifications.models import OVER, Notification, NotificationDelivery
from incidents.notifications.reachability import NO_METHOD
from incidents.notifications.recipients import Reachable, channel, people
from incidents.notifications.result_events import Notes
from incidents.notifications.results import end, save_ended
from ingest.commands import retrying

AT_ONCE = 1_000


class Ticket(NamedTuple):
    """What is wanted of an incident here, whose row is wide."""

    number: int
    severity: Severity


def plan_new(now: datetime, limit: int = AT_ONCE) -> int:
    """Plan calls that have no plan yet; how many."""
    return retrying(partial(_plan, now, limit))


@transaction.atomic
def _plan(now: datetime, limit: int) -> int:
    new = Notification.objects.filter(state="new").order_by("made_at")[:limit]
    rows = list(new.select_for_update(skip_locked=True))
    known = people(row.person for row in rows if row.person is not None)
    tickets = _tickets(rows)
    fresh, ended, notes = list[NotificationDelivery](), list[Notification](), Notes()
    for row in sorted(rows, key=lambda row: _number(tickets, row)):
        ticket = tickets.get(row.incident)
        made, problem = _planned(row, ticket, known)
        fresh += made
        if made:
            row.state = "going"
        else:
            end(row, "given_up", problem, now, notes)
            ended.append(row)
    insert(NotificationDelivery, [columns(one, SENDING) for one in fresh])
    going = [row.pk for row in rows if row.state == "going"]
    Notification.objects.filter(pk__in=going).update(state="going")
    save_ended(ended)
    notes.record()
    return len(rows)


def _planned(
    row: Notification, ticket: Ticket | None, known: Mapping[str, Reachable]
) -> tuple[list[NotificationDelivery], str]:
    if ticket is None:
        return [], "no such incident"
    if row.about == OVER:
        return _as_before(row), "the contact method was removed"
    return _addressed(row) if row.person is None else _called(row, ticket, known.get(row.person))


def _tickets(rows: Iterable[Notification]) -> dict[UUID, Ticket]:
    found = IncidentRow.objects.filter(pk__in={row.incident for row in rows})
    told = found.values_list("pk", "number", "severity")
    return {pk: Ticket(number, severity) for pk, number, severity in told}  # type: ignore[arg-type]


def _number(tickets: Mapping[UUID, Ticket], row: Notification) -> int:
    ticket = tickets.get(row.incident)
    return 0 if ticket is None else ticket.number


def _called(
    row: Notification, ticket: Ticket, known: Reachable | None
) -> tuple[list[NotificationDelivery], str]:
    if known is None:
        return [], f"no active account {row.person}"
    found = steps(known.person, ticket.severity, row.urgent, row.made_at)
    return planned(row, found, known), NO_METHOD


def _as_before(row: Notification) -> list[NotificationDelivery]:
    """The methods by which the calls that are over were sent, each once, at once."""
    about = {"incident": row.incident, "person": row.person, "address_ref": row.address_ref}
    calls = Notification.objects.filter(**about).exclude(about=OVER)
    sent = NotificationDelivery.objects.filter(notification__in=calls, state="sent").order_by(
        "ended_at", "pk"
    )
    latest = {one.label: one for one in sent}
    return [
        NotificationDelivery(
            notification=row,
            place=place,
            source=one.source,
            method_id=one.method_id,
            label=one.label,
            kind=one.kind,
            lane=one.lane,
            at=row.made_at,
            next_at=row.made_at,
        )
        for place, one in enumerate(latest.values())
    ]


def _addressed(row: Notification) -> tuple[list[NotificationDelivery], str]:
    """A call of an address: a shared channel by its name, or what was given."""
    ref, method = row.address_ref, channel(row.address_ref)
    if method is None and "://" not in ref:
        return [], f"no channel {ref[:60]}"
    kind, address = (row.kind, ref) if method is None else (method.kind, method.address)
    sending = NotificationDelivery(
        notification=row,
        place=0,
        source="direct" if method is None else "method",
        method=method,
        label=shown(kind, ref) if method is None else method.name,
        kind=kind,
        lane=queue_key(kind, address),
        at=row.made_at,
        next_at=row.made_at,
    )
    return [sending], ""
