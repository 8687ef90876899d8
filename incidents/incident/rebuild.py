"""Drops read models and builds them again from the log, a few incidents at a time, while writers go on.

The incidents of a transaction are held by their rows: a command on one of them waits for a moment, all others do not
notice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, models, transaction

from incidents.incident.models import (
    AnalyzerOutcomeRow,
    EvidenceItem,
    FindingPlacement,
    IncidentRow,
    MemberAlert,
    ScheduleWindowRow,
    TimelineEntry,
)
from incidents.incident.projection import Folded, parts, project_together
from incidents.incident.repository import stream_of
from ingest.commands import rebuild_copies
from ingest.queries import Position, follower_places, read_all, read_stream, read_streams, watermark

FOLLOWER = "incidents"
TOGETHER = 50
"""Incidents in one transaction."""
_PARTS: tuple[type[models.Model], ...] = (
    TimelineEntry,
    EvidenceItem,
    FindingPlacement,
    MemberAlert,
    AnalyzerOutcomeRow,
)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """How many incidents were rebuilt, and what had differed: ids of incidents, "schedule windows" or "audit
    entries".
    """

    incidents: int
    differed: tuple[str, ...]


def rebuild(progress: Callable[[int], None] = lambda _: None) -> Rebuilt:
    """Rebuilds every read model of incidents, and other copies of the log; afterwards they say what the log says."""
    opened = _opened_incidents()
    differed = _drop_strangers(opened)
    for start in range(0, len(opened), TOGETHER):
        together = opened[start : start + TOGETHER]
        differed += rebuild_incidents(together)
        progress(start + len(together))
    if _rebuild_windows():
        differed.append("schedule windows")
    differed += rebuild_copies()
    _set_next_number()
    return Rebuilt(len(opened), tuple(differed))


def _opened_incidents() -> list[str]:
    ids: list[str] = []
    after, mark = Position.START, watermark()
    while events := read_all(after, 1000, {"incident.opened"}, upto=mark):
        ids += [event.body["id"] for event in events]
        after = events[-1].position
    return ids


def _drop_strangers(opened: list[str]) -> list[str]:
    """Rows of incidents that the log does not know. One opened just now is known to its stream."""
    candidates = IncidentRow.objects.exclude(pk__in=opened).values_list("pk", flat=True)
    strangers = [pk for pk in candidates if not read_stream(stream_of(str(pk)))]
    IncidentRow.objects.filter(pk__in=strangers).delete()
    return [str(pk) for pk in strangers]


@transaction.atomic
def rebuild_incidents(ids: Sequence[str]) -> list[str]:
    """Those whose read models differed from what their events give. In one transaction, which holds all of them."""
    list(IncidentRow.objects.select_for_update().filter(pk__in=ids).order_by("number").values_list("pk"))
    events = read_streams([stream_of(id_) for id_ in ids])
    before = checksums(ids)
    for model in _models():
        model._default_manager.filter(incident_id__in=ids).delete()
    project_together([(None, events[stream_of(id_)]) for id_ in ids])
    after = checksums(ids)
    return [id_ for id_ in ids if before[id_] != after[id_]]


def _models() -> tuple[type[models.Model], ...]:
    return (*_PARTS, *(part.model for part in parts()))


def checksums(ids: Sequence[str]) -> dict[str, str]:
    """By incident one hash over all rows about it, whatever their surrogate keys."""
    digests = {UUID(id_): sha256() for id_ in ids}
    _add(digests, IncidentRow.objects.filter(pk__in=digests), "id")
    for model in _models():
        rows = model._default_manager.filter(incident_id__in=digests)
        _add(digests, rows.order_by("incident_id", "version", "pk"), "incident_id")
    return {str(pk): digest.hexdigest() for pk, digest in digests.items()}


def _add(digests: Mapping[UUID, Any], rows: models.QuerySet[Any], owner: str) -> None:
    names = [f.attname for f in rows.model._meta.concrete_fields if not isinstance(f, models.BigAutoField)]
    for row in rows.values(*names):
        digests[row[owner]].update(json.dumps(row, sort_keys=True, cls=DjangoJSONEncoder).encode())


def _rebuild_windows() -> bool:
    """The windows that the follower has seen. Folded before anything is locked or written: there may be years of runs,
    and meanwhile the follower would wait, and behind the transaction all readers of the log."""
    folded = Folded()
    after = _fold(folded, Position.START)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE incident_schedule_window IN EXCLUSIVE MODE")
        # Its place stands while the table is locked.
        _fold(folded, after)
        before = _windows()
        ScheduleWindowRow.objects.all().delete()
        ScheduleWindowRow.objects.bulk_create(folded.rows())
        return _windows() != before


def _fold(folded: Folded, after: Position) -> Position:
    """Up to the follower's place; returns the last event's."""
    place = next((p.position for p in follower_places() if p.name == FOLLOWER), Position.START)
    while events := read_all(after, 1000, {"analysis.recorded"}, upto=place):
        for event in events:
            folded.add(event)
        after = events[-1].position
    return after


def _windows() -> list[tuple[Any, ...]]:
    rows = ScheduleWindowRow.objects.order_by("schedule", "end")
    return list(rows.values_list("schedule", "start", "end", "run", "causes"))


def _set_next_number() -> None:
    """After a restore of the log alone the sequence must not give a number again."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT setval('incident_number', given.highest)"
            " FROM (SELECT max(number) AS highest FROM incident) AS given, incident_number AS seq"
            " WHERE (given.highest, true) > (seq.last_value, seq.is_called)"
        )
