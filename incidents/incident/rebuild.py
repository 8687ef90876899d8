"""Builds the read models of incidents again from the log, beside those in use, and exchanges what differs.

Incidents are taken in the order in which they were opened, many at a time: their events are read and folded together,
their rows are copied into temporary tables, and one statement for each table compares these with the rows in use, byte
by byte. Nothing in use is locked so far. Incidents that differ are locked by their rows, folded again where a command
came in between, and their rows exchanged, in the transaction that records how far the rebuild is. So readers see an
incident as it was or as it will be, a command waits only for an incident that is being exchanged, foreign keys, numbers
and tables that are not rebuilt stay as they are, and a rebuild that was killed goes on where it was.

A thread with a connection of its own reads and folds a group of incidents while Postgres compares the group before.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, connections, models, transaction

from incidents.incident.models import (
    AnalyzerOutcomeRow,
    EvidenceItem,
    FindingPlacement,
    IncidentRow,
    MemberAlert,
    RebuildProgress,
    ScheduleWindowRow,
    TimelineEntry,
)
from incidents.incident.projection import Folded, change, parts
from incidents.incident.repository import stream_of
from incidents.incident.rows import rows_of
from ingest.commands import rebuild_copies
from ingest.db.database import CopyText, copy, copy_text
from ingest.queries import (
    Position,
    follower_places,
    heads,
    now_utc,
    position_at,
    read_all,
    read_streams,
    watermark,
)

FOLLOWER = "incidents"
TOGETHER = 1_000
"""Incidents in one transaction, at most."""
MOST_EVENTS = 10_000
"""Events of a group, unless one incident has more. Two groups are in memory."""
HOT = 50
"""Incidents folded at once: their states, 2 kB an event, stay in the caches of the processor."""
RESUMED_WITHIN = timedelta(days=1)
"""A rebuild that stands for longer starts over: read models may have changed since."""
STANDS_AFTER = timedelta(minutes=10)
PATIENCE = 5.0
"""Seconds for the lock. Postgres notices the death of a killed rebuild, and lets go of its lock, a moment later."""
_PARTS: tuple[type[models.Model], ...] = (
    TimelineEntry,
    EvidenceItem,
    FindingPlacement,
    MemberAlert,
    AnalyzerOutcomeRow,
)


class RebuildRunningError(Exception):
    """Another process rebuilds the read models."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Number of incidents rebuilt, and the parts that had differed: ids of incidents, "schedule windows" or "audit
    entries".
    """

    incidents: int
    differed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a rebuild: `part` of the log is done. `resumed`: since when it was going on before this process."""

    incidents: int
    part: float
    resumed: datetime | None


def rebuild(progress: Callable[[Progress], None] = lambda _: None, from_start: bool = False) -> Rebuilt:
    """Rebuilds every read model of incidents, and other copies of the log; afterwards they say what the log says.

    Goes on with one that was ended before its time, unless `from_start`. Raises RebuildRunningError.
    """
    with _alone():
        row, resumed = _begun(from_start)
        _drop_strangers(row)
        after = Position.parse(row.position) if row.position else Position.START
        mark, last = watermark(), position_at(now_utc())
        progress(Progress(row.incidents, _part(after, last), resumed))
        with _uncollected(), closing(_ahead(_built(_groups(after, mark)))) as built:
            for group in built:
                with transaction.atomic():
                    row.differed += _exchange_differing(group)
                    row.incidents += len(group.ids)
                    row.position, row.moved_at = str(group.last), now_utc()
                    row.save()
                progress(Progress(row.incidents, _part(group.last, last), resumed))
        differed = list(row.differed)
        if _rebuild_windows():
            differed.append("schedule windows")
        differed += rebuild_copies()
        _set_next_number()
        row.delete()
    return Rebuilt(row.incidents, tuple(differed))


@contextmanager
def _alone() -> Iterator[None]:
    """While a lock of this session is held, which ends with the process."""
    lock = "hashtextextended('rebuild of incidents', 0)"
    last = time.monotonic() + PATIENCE
    with connection.cursor() as cursor:
        while True:
            cursor.execute(f"SELECT pg_try_advisory_lock({lock})")
            if cursor.fetchone()[0]:
                break
            if time.monotonic() > last:
                raise RebuildRunningError("another process rebuilds the read models")
            time.sleep(0.05)
        try:
            yield
        finally:
            if connection.connection is not None and not connection.connection.closed:
                cursor.execute(f"SELECT pg_advisory_unlock({lock})")


def _begun(from_start: bool) -> tuple[RebuildProgress, datetime | None]:
    now = now_utc()
    found = RebuildProgress.objects.first()
    if found is not None and not from_start and now - found.moved_at < RESUMED_WITHIN:
        return found, found.began_at
    RebuildProgress.objects.all().delete()
    return RebuildProgress.objects.create(began_at=now, moved_at=now), None


def unfinished_rebuild() -> datetime | None:
    """Start of a rebuild that has not moved for a while."""
    still = RebuildProgress.objects.filter(moved_at__lt=now_utc() - STANDS_AFTER).first()
    return None if still is None else still.began_at


def _part(after: Position, last: Position) -> float:
    return min(1.0, after.seq / last.seq) if last.seq else 1.0


def _drop_strangers(row: RebuildProgress) -> None:
    """Rows of incidents that the log does not know. One opened just now is known to its stream."""
    ids = [str(pk) for pk in IncidentRow.objects.order_by("pk").values_list("pk", flat=True)]
    for start in range(0, len(ids), MOST_EVENTS):
        known = heads([stream_of(id_) for id_ in ids[start : start + MOST_EVENTS]])
        strangers = [id_ for id_ in ids[start : start + MOST_EVENTS] if known[stream_of(id_)].version == 0]
        with transaction.atomic():
            IncidentRow.objects.filter(pk__in=strangers).delete()
            row.differed += strangers
            row.save()
    with transaction.atomic(), connection.cursor() as cursor:
        # The only part without a foreign key.
        cursor.execute(
            "WITH gone AS (DELETE FROM incident_alert AS member"
            " WHERE NOT EXISTS (SELECT FROM incident WHERE incident.id = member.incident_id) RETURNING incident_id)"
            " SELECT DISTINCT incident_id::text FROM gone ORDER BY 1"
        )
        row.differed += [id_ for (id_,) in cursor.fetchall()]
        row.save()


# Incidents
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Group:
    """Incidents that are exchanged together; `last` is the place in the log where the last of them was opened."""

    ids: Sequence[str]
    last: Position


@dataclass(frozen=True, slots=True)
class _Built(_Group):
    """With the version of each incident, and their rows."""

    versions: Mapping[str, int]
    rows: Mapping[type[models.Model], Sequence[CopyText]]


def rebuild_incidents(ids: Sequence[str]) -> list[str]:
    """Those whose read models differed from what their events give."""
    groups = _grouped([(id_, Position.START) for id_ in ids])
    return [id_ for group in _built(groups) for id_ in _exchange_differing(group)]


def _groups(after: Position, mark: Position) -> Iterator[_Group]:
    while opened := read_all(after, TOGETHER, {"incident.opened"}, upto=mark):
        after = opened[-1].position
        yield from _grouped([(event.body["id"], event.position) for event in opened])


def _grouped(opened: Sequence[tuple[str, Position]]) -> Iterator[_Group]:
    known = heads([stream_of(id_) for id_, _ in opened])
    ids, events, last = list[str](), 0, Position.START
    for id_, position in opened:
        own = known[stream_of(id_)].version
        if ids and events + own > MOST_EVENTS:
            yield _Group(ids, last)
            ids, events = [], 0
        ids.append(id_)
        events, last = events + own, position
    if ids:
        yield _Group(ids, last)


def _built(groups: Iterator[_Group]) -> Iterator[_Built]:
    return (_build(group.ids, group.last) for group in groups)


def _build(ids: Sequence[str], last: Position = Position.START) -> _Built:
    events = read_streams([stream_of(id_) for id_ in ids])
    rows: dict[type[models.Model], list[CopyText]] = {model: [] for model in _models()}
    for start in range(0, len(ids), HOT):
        changes = [change(None, events[stream_of(id_)]) for id_ in ids[start : start + HOT]]
        for model, columns in rows_of(changes).items():
            if columns:
                rows[model].append(copy_text(model, columns))
    return _Built(ids, last, {id_: events[stream_of(id_)][-1].version for id_ in ids}, rows)


def _ahead(groups: Iterator[_Built]) -> Generator[_Built]:
    """Each built in another thread while the one before it is in use."""
    with ThreadPoolExecutor(1) as pool:
        try:
            following = pool.submit(next, groups, None)
            while (group := following.result()) is not None:
                following = pool.submit(next, groups, None)
                yield group
        finally:
            pool.submit(connections.close_all)


def _exchange_differing(group: _Built) -> list[str]:
    with transaction.atomic():
        _place(group)
        differing = _differing(group.ids)
        if not differing:
            return []
        list(
            IncidentRow.objects.select_for_update()
            .filter(pk__in=differing)
            .order_by("number")
            .values_list("pk")
        )
        known = heads([stream_of(id_) for id_ in differing])
        if moved := [id_ for id_ in differing if known[stream_of(id_)].version != group.versions[id_]]:
            _remove("rebuilt_", moved)
            _place(_build(moved), empty=False)
            differing = _differing(differing)
        _exchange(differing)
        return differing


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the collector of cycles: a rebuild makes none, and a tenth of its time was the search for them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _models() -> tuple[type[models.Model], ...]:
    return (IncidentRow, *_PARTS, *(part.model for part in parts()))


def _columns(model: type[models.Model]) -> list[str]:
    """All but surrogate keys."""
    fields = (field for field in model._meta.concrete_fields if not isinstance(field, models.BigAutoField))
    return [str(field.column) for field in fields]


def _owner(model: type[models.Model]) -> str:
    return "id" if model is IncidentRow else "incident_id"


def _key(model: type[models.Model]) -> list[str]:
    """The columns that tell rows of the model apart."""
    if model._meta.pk.column in _columns(model):
        return [_owner(model)]
    (unique, *_) = model._meta.total_unique_constraints
    columns = {field.name: str(field.column) for field in model._meta.concrete_fields}
    return list(dict.fromkeys(["incident_id", *(columns[name] for name in unique.fields)]))


def _place(group: _Built, empty: bool = True) -> None:
    """Put the rows into temporary tables."""
    with connection.cursor() as cursor:
        if empty:
            statements = [
                f'CREATE TEMPORARY TABLE IF NOT EXISTS "rebuilt_{model._meta.db_table}"'
                f' AS SELECT {_named("", model)} FROM "{model._meta.db_table}" WITH NO DATA'
                for model in _models()
            ]
            tables = ", ".join(f'"rebuilt_{model._meta.db_table}"' for model in _models())
            cursor.execute("; ".join([*statements, f"TRUNCATE {tables}"]))
    for model, rows in group.rows.items():
        copy(f"rebuilt_{model._meta.db_table}", rows)


def _differing(ids: Sequence[str]) -> list[str]:
    """Those of these incidents of which a row in use and that of the temporary table are not the same bytes. All
    incidents of the temporary tables are compared: their ids, written out, took longer than some comparisons.
    """
    compared = []
    for model in _models():
        table, owner = model._meta.db_table, _owner(model)
        same = " AND ".join(f'used."{name}" = built."{name}"' for name in _key(model))
        compared.append(
            f'SELECT coalesce(used."{owner}", built."{owner}") AS id FROM'
            f' (SELECT * FROM "{table}" WHERE "{owner}" IN (SELECT id FROM "rebuilt_incident")) AS used'
            f' FULL JOIN "rebuilt_{table}" AS built ON {same}'
            f" WHERE record_image_ne(ROW({_named('used.', model)}), ROW({_named('built.', model)}))"
        )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT DISTINCT id::text FROM ({' UNION ALL '.join(compared)}) AS differing")
        found = {id_ for (id_,) in cursor.fetchall()}
    return [id_ for id_ in ids if id_ in found]


def _named(side: str, model: type[models.Model]) -> str:
    return ", ".join(f'{side}"{name}"' for name in _columns(model))


def _remove(prefix: str, ids: Sequence[str]) -> None:
    with connection.cursor() as cursor:
        for model in _models():
            if model is IncidentRow and not prefix:
                continue  # exchanged in place: a command that waits for the row must find it, not a grave
            cursor.execute(
                f'DELETE FROM "{prefix}{model._meta.db_table}" WHERE "{_owner(model)}" = ANY(%s::uuid[])',
                (list(ids),),
            )


def _exchange(ids: Sequence[str]) -> None:
    """Make the rows of the temporary tables those in use."""
    _remove("", ids)
    with connection.cursor() as cursor:
        for model in _models():
            table, owner = model._meta.db_table, _owner(model)
            named = _named("", model)
            changed = ", ".join(f'"{name}" = EXCLUDED."{name}"' for name in _columns(model) if name != "id")
            cursor.execute(
                f'INSERT INTO "{table}" ({named}) SELECT {named} FROM "rebuilt_{table}"'
                f' WHERE "{owner}" = ANY(%s::uuid[]) ORDER BY ctid'
                + (f" ON CONFLICT (id) DO UPDATE SET {changed}" if model is IncidentRow else ""),
                (list(ids),),
            )


def checksums(ids: Sequence[str]) -> dict[str, str]:
    """By incident one hash over all rows about it, whatever their surrogate keys."""
    digests = {UUID(id_): sha256() for id_ in ids}
    _add(digests, IncidentRow.objects.filter(pk__in=digests), "id")
    for model in _models()[1:]:
        rows = model._default_manager.filter(incident_id__in=digests)
        _add(digests, rows.order_by("incident_id", "version", "pk"), "incident_id")
    return {str(pk): digest.hexdigest() for pk, digest in digests.items()}


def _add(digests: Mapping[UUID, Any], rows: models.QuerySet[Any], owner: str) -> None:
    names = [f.attname for f in rows.model._meta.concrete_fields if not isinstance(f, models.BigAutoField)]
    for row in rows.values(*names):
        digests[row[owner]].update(json.dumps(row, sort_keys=True, cls=DjangoJSONEncoder).encode())


# Windows and numbers
# ----------------------------------------------------------------------------------------------------------
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
