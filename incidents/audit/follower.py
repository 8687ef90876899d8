"""The log's changes of configuration, kept where they can be searched. The follower's place moves with the rows."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection, transaction

from incidents.audit.models import Change
from ingest.commands import Follower, LogIntegrityError
from ingest.queries import Event, Position, follower_places, read_all

NAME = "audit"
TYPES = frozenset({"configuration.changed"})
BATCH = 500
FIELDS = ("kind", "key", "actor", "at", "before", "after")


def keep(events: list[Event]) -> None:
    Change.objects.bulk_create([_entry(event) for event in events], ignore_conflicts=True)


def check() -> int:
    """Number of entries that equal their events. Raises LogIntegrityError for the first that was deleted, edited or
    put in."""
    after, count, place = Position.START, 0, _place()
    while events := read_all(after, BATCH, TYPES, upto=place):
        upto = place if len(events) < BATCH else events[-1].position
        found = Change.objects.filter(position__gt=str(after), position__lte=str(upto))
        stored = {entry.position: entry for entry in found}
        for event in events:
            entry, right = stored.pop(str(event.position), None), _entry(event)
            if entry is None:
                raise LogIntegrityError(event.id, "has no audit entry any more")
            if wrong := [field for field in FIELDS if getattr(entry, field) != getattr(right, field)]:
                raise LogIntegrityError(
                    event.id, f"has an audit entry that says something else: {', '.join(wrong)}"
                )
        _refuse(stored.values())
        after, count = upto, count + len(events)
    _refuse(Change.objects.filter(position__gt=str(after)).order_by("position")[:1])
    return count


def rebuild() -> bool:
    """Write all entries anew from the log; whether any differed."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"follower {NAME}",))
        try:
            check()
        except LogIntegrityError:
            Change.objects.all().delete()
            after, place = Position.START, _place()
            while events := read_all(after, BATCH, TYPES, upto=place):
                keep(events)
                after = events[-1].position
            return True
    return False


def _place() -> Position:
    return next((place.position for place in follower_places() if place.name == NAME), Position.START)


def _refuse(strangers: Iterable[Change]) -> None:
    for one in strangers:
        raise LogIntegrityError(f"audit entry {one.pk}", f"({one}) stands for no event of the log")


def _entry(event: Event) -> Change:
    return Change(
        position=str(event.position),
        kind=event.body["kind"],
        key=event.body["key"],
        actor=event.actor,
        at=event.recorded_at,
        before=event.body["before"],
        after=event.body["after"],
    )


FOLLOWER = Follower(NAME, TYPES, keep)
