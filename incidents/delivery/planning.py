"""Calls become steps: one row for each method that is to be tried."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction

from incidents.delivery.models import Notification, Sending
from incidents.delivery.notes import Notes
from incidents.delivery.people import Reachable, channel, people
from incidents.delivery.recording import end, save_ended, tickets_of
from incidents.delivery.steps import lane_of, planned, shown
from incidents.domain.reaching import steps
from incidents.projections.models import IncidentRow
from ingest.commands import retrying

AT_ONCE = 200


def plan_new(now: datetime, limit: int = AT_ONCE) -> int:
    """Plan calls that have no plan yet; how many."""
    return retrying(partial(_plan, now, limit))


@transaction.atomic
def _plan(now: datetime, limit: int) -> int:
    new = Notification.objects.filter(state="new").order_by("made_at")[:limit]
    rows = list(new.select_for_update(skip_locked=True))
    known = people(row.person for row in rows if row.person is not None)
    tickets = tickets_of(rows)
    fresh, ended, notes = list[Sending](), list[Notification](), Notes()
    for row in sorted(rows, key=lambda row: _number(tickets, row)):
        ticket = tickets.get(row.incident)
        made, problem = _planned(row, ticket, known)
        fresh += made
        if made:
            row.state = "going"
        else:
            end(row, "given_up", problem, now, notes)
            ended.append(row)
    Sending.objects.bulk_create(fresh)
    going = [row.pk for row in rows if row.state == "going"]
    Notification.objects.filter(pk__in=going).update(state="going")
    save_ended(ended)
    notes.record()
    return len(rows)


def _planned(
    row: Notification, ticket: IncidentRow | None, known: Mapping[str, Reachable]
) -> tuple[list[Sending], str]:
    if ticket is None:
        return [], "there is no such ticket"
    return _addressed(row) if row.person is None else _called(row, ticket, known.get(row.person))


def _number(tickets: Mapping[UUID, IncidentRow], row: Notification) -> int:
    ticket = tickets.get(row.incident)
    return 0 if ticket is None else ticket.number


def _called(row: Notification, ticket: IncidentRow, known: Reachable | None) -> tuple[list[Sending], str]:
    if known is None:
        return [], f"there is no open account {row.person}"
    found = steps(known.person, ticket.severity, row.urgent, row.made_at)  # type: ignore[arg-type]
    return planned(
        row, found, known
    ), f"{row.person} has no way to be reached: no method and no e-mail address"


def _addressed(row: Notification) -> tuple[list[Sending], str]:
    """A call of an address: a shared channel by its name, or what was given."""
    ref, method = row.address_ref, channel(row.address_ref)
    if method is None and "://" not in ref:
        return [], f"there is no channel {ref[:60]}"
    kind, address = (row.kind, ref) if method is None else (method.kind, method.address)
    sending = Sending(
        notification=row,
        place=0,
        source="direct" if method is None else "method",
        method=method,
        label=shown(kind, ref) if method is None else method.name,
        kind=kind,
        lane=lane_of(kind, address),
        at=row.made_at,
        next_at=row.made_at,
    )
    return [sending], ""
