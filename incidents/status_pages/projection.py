"""Rows of notices: written by commands with their events, compared with the log, written once more from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.db import transaction

from incidents.domain.status_pages import EVENT_TYPES, Notice, fold, updates_from
from incidents.status_pages.models import StatusNotice
from ingest.commands import LogIntegrityError
from ingest.queries import Position, read_all, read_stream

BATCH: Final = 500
_STREAM: Final = "status_notice/"


def stream_of(id_: str) -> str:
    return f"{_STREAM}{id_}"


def notice_of(row: StatusNotice) -> Notice:
    return Notice(
        id=str(row.pk),
        page=row.page,
        kind=row.kind,
        title=row.title,
        incident=None if row.incident is None else str(row.incident),
        updates=updates_from(row.updates),
        withdrawn=row.withdrawn,
    )


def columns_of(notice: Notice) -> dict[str, Any]:
    """The columns of a row but its key and `version`."""
    return {
        "page": notice.page,
        "kind": notice.kind,
        "title": notice.title,
        "incident": notice.incident,
        "updates": [one.as_json() for one in notice.updates],
        "began_at": notice.began_at,
        "ended_at": notice.ended_at,
        "withdrawn": notice.withdrawn,
    }


def project(notice: Notice, version: int) -> None:
    StatusNotice.objects.update_or_create(pk=notice.id, defaults={**columns_of(notice), "version": version})


def check() -> int:
    """Number of notices that equal their events. Raises LogIntegrityError for the first that does not."""
    versions = dict(_streams())
    rows = {stream_of(str(row.pk)): row for row in StatusNotice.objects.iterator()}
    for stream, version in versions.items():
        if stream not in rows or rows[stream].version < version:
            raise LogIntegrityError(f"{stream}@{version}", "has no status notice")
    for stream, row in rows.items():
        events = [event for event in read_stream(stream) if event.version <= row.version]
        if len(events) != row.version or (found := fold(events)) is None:
            raise LogIntegrityError(f"status notice {row.pk}", "stands for no events of the log")
        if notice_of(row) != found or (row.began_at, row.ended_at) != (found.began_at, found.ended_at):
            raise LogIntegrityError(events[-1].id, "has a status notice of another content")
    return len(rows)


@transaction.atomic
def rebuild() -> bool:
    """Write all notices once more from the log; whether any differed."""
    try:
        check()
    except LogIntegrityError:
        StatusNotice.objects.all().delete()
        for stream, _ in _streams():
            events = read_stream(stream)
            notice = fold(events)
            assert notice is not None
            project(notice, events[-1].version)
        return True
    return False


def _streams() -> Iterator[tuple[str, int]]:
    """Streams of notices and their last version."""
    found: dict[str, int] = {}
    after = Position.START
    while events := read_all(after, BATCH, EVENT_TYPES):
        for event in events:
            found[event.stream] = event.version
        after = events[-1].position
    yield from found.items()
