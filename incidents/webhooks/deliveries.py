"""Events as deliveries: who gets which, and the incident as it stood after each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from incidents.domain import status_pages
from incidents.domain.incident.evolve import evolve, fold
from incidents.domain.incident.state import Incident, failure_of
from incidents.domain.status_pages import EVENT_TYPES as STATUS_EVENTS
from incidents.domain.values import rfc3339
from incidents.domain.webhooks import EventFilter, body_of, payload
from incidents.incident.view import View
from ingest.queries import Event, read_stream


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """An event as it is delivered. `event` is its id, which stays the same however often it is sent; `incident` is 0
    for an event of a status page."""

    event: str
    type: str
    version: int
    position: str
    incident: int
    body: bytes


class Histories:
    """Incidents as they stood after the event that was last asked for.

    What is read of an incident is remembered, so that one with thousands of events is folded once and not for each of
    them; of the incidents asked for last, `most` are.
    """

    def __init__(self, most: int = 500) -> None:
        self._most = most
        self._kept: OrderedDict[str, tuple[int, Incident]] = OrderedDict()

    def around(self, event: Event) -> tuple[Incident | None, Incident]:
        """The incident before and after an event."""
        before = self._before(event)
        after = evolve(before, event)
        self._kept[event.stream] = (event.version, after)
        self._kept.move_to_end(event.stream)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return before, after

    def _before(self, event: Event) -> Incident | None:
        if event.version == 1:
            return None
        version, state = self._kept.get(event.stream, (0, None))
        if version >= event.version:
            version, state = 0, None
        if version < event.version - 1:
            missing = read_stream(event.stream, version, upto=event.position)
            state = fold((one for one in missing if one.version < event.version), state)
        return state


def letters(events: Iterable[Event], wanted: EventFilter, histories: Histories) -> list[WebhookDelivery]:
    """Deliveries of those events that are wanted, in their order. Events of status pages have no team, no severity."""
    made = []
    for event in events:
        if wanted.types and event.type not in wanted.types:
            continue  # spares the incident's history
        if event.type in STATUS_EVENTS:
            made.append(_status_letter(event))
            continue
        if wanted.is_for_another(event.type, event.body):
            continue
        before, after = histories.around(event)
        if wanted.lets_through(event.type, before, after):
            made.append(_letter(event, after))
    return made


def _status_letter(event: Event) -> WebhookDelivery:
    """Delivery of a status page's state after the event, for receivers outside: neither the person nor the incident."""
    notice = status_pages.fold(read_stream(event.stream, upto=event.position))
    assert notice is not None
    position = str(event.position)
    body = {
        "id": event.id,
        "type": event.type,
        "occurred_at": rfc3339(event.occurred_at),
        "position": position,
        "page": notice.page,
        "notice": None if notice.withdrawn else status_pages.public_json(notice),
    }
    return WebhookDelivery(event.id, event.type, event.version, position, 0, body_of(body))


def _letter(event: Event, after: Incident) -> WebhookDelivery:
    position = str(event.position)
    body = payload(
        event.id,
        event.type,
        event.actor,
        event.occurred_at,
        position,
        View(after, event.version, position).as_json(failure_of(after, event.recorded_at, None)),
        event.body,
    )
    return WebhookDelivery(event.id, event.type, event.version, position, after.number, body)
