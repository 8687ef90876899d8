"""What was sent to a person lately, in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from incidents.delivery.models import Sending
from incidents.projections.models import IncidentRow


@dataclass(frozen=True, slots=True)
class Lately:
    """One step of a call; `number` is that of the ticket, None where there is none any more."""

    number: int | None
    label: str
    at: datetime
    words: str


def lately(person: str, most: int) -> list[Lately]:
    """The newest first."""
    rows = Sending.objects.filter(notification__person=person).select_related("notification")
    found = list(rows.order_by("-notification__made_at", "place")[:most])
    tickets = IncidentRow.objects.in_bulk({one.notification.incident for one in found})
    return [
        Lately(
            number=ticket.number if (ticket := tickets.get(one.notification.incident)) else None,
            label=one.label,
            at=one.ended_at or one.notification.made_at,
            words=_words(one),
        )
        for one in found
    ]


def _words(one: Sending) -> str:
    if one.state == "sent":
        return f"sent: {one.notification.why}"
    if one.state == "stopped":
        return f"not sent any more: {one.why}"
    if one.state == "given_up":
        return f"given up: {one.why}"
    if one.attempts:
        return f"tried {one.attempts} time{'' if one.attempts == 1 else 's'}, tried again: {one.why}"
    return f"held back: {one.held}" if one.held else "waits for its time"
