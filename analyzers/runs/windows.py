"""Windows of runs: read from telemetry, stored under their hash, and looked into afterwards.

A window is stored as its sums in canonical bytes: they outlive the telemetry itself, and a repeated run sees exactly
what the first one saw. For that reason the first run, too, reads from the stored bytes. Windows and verdicts that no
run has used for `DOSSIER_RUN_RETENTION` are deleted; what a run concluded is in the log and stays.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection
from django.db.models.functions import Now
from numpy.typing import NDArray

from analyzers.contract import INVENTORY, Analyzer, Input, Paths, Sums, Window
from analyzers.runs import scheduler
from analyzers.runs.models import Run, State, StoredVerdict, StoredWindow
from ingest.queries import dump_sums, load_sums, parse_rfc3339, read_window, watermark

Bounds = tuple[datetime, datetime]


class UnknownInputError(LookupError):
    """The analyzer has no input of that name."""


class WindowNotStoredError(LookupError):
    """A window that was kept is not there any more, or never was."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A window with its history, the hashes they are kept under, and the log position they were read at.

    `history` holds the end and the hash of each preceding window, oldest first.
    """

    window: Window
    hash: str
    history: tuple[tuple[datetime, str], ...]
    position: str


def read_run_window(run: Run, analyzer: Analyzer) -> Reading:
    """Read the run's window as it stands in the log now, and what came before it."""
    upto = watermark()
    chosen, sums = first_with_rows(
        choices(analyzer, run.input),
        lambda one: read_window(one, run.region, run.window_start, run.window_end, upto),
    )
    digest = store_window(sums)
    wanted = analyzer.history if run.history_wanted is None else run.history_wanted
    span = scheduler.telemetry_span(chosen.kinds, run.region)
    earlier = windows_before(run.window_start, run.length, wanted, span.first) if span is not None else []
    known = _stored_history(run, analyzer, chosen, earlier)
    history = tuple(
        (end, known.get(end) or store_window(read_window(chosen, run.region, start, end, upto)))
        for start, end in earlier
    )
    return _load(run, chosen.name, digest, history, str(upto))


def read_stored_window(run: Run) -> Reading:
    """Window of a finished run, from what it stored. Raises WindowNotStoredError."""
    history = tuple((parse_rfc3339(past["end"]), past["hash"]) for past in run.history)
    touch_windows({run.window_hash, *(digest for _, digest in history)})
    return _load(run, run.input, run.window_hash, history, run.input_position)


def choices(analyzer: Analyzer, name: str) -> tuple[Input, ...]:
    """The inputs to try, in order: the one named, or all. Raises UnknownInputError."""
    found = tuple(one for one in analyzer.inputs if name in ("", one.name))
    if not found:
        have = ", ".join(one.name for one in analyzer.inputs)
        raise UnknownInputError(f"{analyzer.name} has no input {name!r}; it has {have}")
    return found


def first_with_rows(
    inputs: tuple[Input, ...], read: Callable[[Input], Mapping[str, Sums]]
) -> tuple[Input, Mapping[str, Sums]]:
    """The first input that has rows in the window (of a state: in force at its start), else the first."""
    empty = None
    for one in inputs:
        sums = read(one)
        if any(table.rows or table.unmatched for table in sums.values()):
            return one, sums
        empty = sums if empty is None else empty
    assert empty is not None
    return inputs[0], empty


def _stored_history(
    run: Run, analyzer: Analyzer, chosen: Input, windows: list[Bounds]
) -> dict[datetime, str]:
    """Hashes, by end, of those windows that a run of the same version already read and that are still kept."""
    done = Run.objects.filter(
        analyzer=analyzer.name,
        version=analyzer.version,
        region=run.region,
        input=chosen.name,
        state=State.DONE,
        window_end__in=[end for _, end in windows],
    ).order_by("created_at")
    bounds = set(windows)
    known = {one.window_end: one.window_hash for one in done if one.window in bounds}
    stored = touch_windows(set(known.values()))
    return {end: digest for end, digest in known.items() if digest in stored}


def _load(
    run: Run, input: str, digest: str, history: tuple[tuple[datetime, str], ...], position: str
) -> Reading:
    bodies = {
        one.hash: bytes(one.body)
        for one in StoredWindow.objects.filter(hash__in={digest, *(body_hash for _, body_hash in history)})
    }

    def window(end: datetime, body_hash: str, past: tuple[Window, ...] = ()) -> Window:
        if body_hash not in bodies:
            raise WindowNotStoredError(
                f"the window ending {end.isoformat()} is not stored (sha256 {body_hash or 'unknown'})"
            )
        return Window(end - run.length, end, run.region, input, load_sums(bodies[body_hash]), past)

    past = tuple(window(end, body_hash) for end, body_hash in history)
    return Reading(window(run.window_end, digest, past), digest, history, position)


AT_ONCE = 200
"""Rows deleted in one statement: while it works, readers of the log wait."""

_USED_AGAIN: Any = {"update_conflicts": True, "unique_fields": ["hash"], "update_fields": ["used_at"]}


def store_window(sums: Mapping[str, Sums]) -> str:
    """The hash that these sums are kept under."""
    body = dump_sums(sums)
    digest = sha256(body).hexdigest()
    StoredWindow.objects.bulk_create([StoredWindow(hash=digest, body=body)], **_USED_AGAIN)
    return digest


def store_verdict(digest: str, body: bytes) -> None:
    StoredVerdict.objects.bulk_create([StoredVerdict(hash=digest, body=body)], **_USED_AGAIN)


def touch_windows(windows: Collection[str]) -> set[str]:
    """Those of these hashes under which a window is kept; it counts as used now, and so stays."""
    if not windows:
        return set()
    found = StoredWindow.objects.filter(hash__in=windows)
    found.update(used_at=Now())
    return set(found.values_list("hash", flat=True))


def has_stored_windows(run: Run) -> bool:
    """Whether all that the run read is still kept."""
    wanted = {run.window_hash, *(past["hash"] for past in run.history)}
    return StoredWindow.objects.filter(hash__in=wanted).count() == len(wanted)


def drop_unused(now: datetime) -> int:
    """Delete what no run has used for `DOSSIER_RUN_RETENTION`; how much."""
    before = now - settings.RUN_RETENTION
    return sum(_drop(model._meta.db_table, before) for model in (StoredWindow, StoredVerdict))


def _drop(table: str, before: datetime) -> int:
    dropped = 0
    while True:
        with connection.cursor() as cursor:
            # Asked again outside: a run may take one up while this statement waits for it.
            cursor.execute(
                f"DELETE FROM {table} WHERE used_at < %s AND hash IN"
                f" (SELECT hash FROM {table} WHERE used_at < %s ORDER BY used_at LIMIT %s)",
                (before, before, AT_ONCE),
            )
            done = int(cursor.rowcount)
        dropped += done
        if done < AT_ONCE:
            return dropped


def stored_sums(run: Run) -> dict[str, Sums] | None:
    """By reduction; None where the window is not kept any more, or never was."""
    stored = StoredWindow.objects.filter(pk=run.window_hash).first() if run.window_hash else None
    return None if stored is None else load_sums(bytes(stored.body))


def sums_as_rows(sums: Sums, most: int | None = None) -> tuple[list[str], list[list[Any]]]:
    """Columns and the first `most` rows (None: all): keys, then values; a set of components is one cell."""
    columns = [*sums.keys, *sums.values]
    cells = [_cells(column) for column in (*sums.keys.values(), *sums.values.values())]
    rows = islice(zip(*cells, strict=True), most) if cells else iter(())
    return columns, [list(row) for row in rows]


def _cells(column: Any) -> Iterator[Any]:
    if isinstance(column, Paths):
        return (" ".join(column[row]) for row in range(len(column)))
    return (one.item() if isinstance(one, np.generic) else one for one in column)


Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class WindowSums:
    """The sums of one window, asked for names."""

    sums: Mapping[str, Sums]

    def names(self, components: Iterable[str]) -> bool:
        """Whether a row of the window names one of the components; that it exists is no news of it."""
        wanted = frozenset(components)
        telemetry = (sums for name, sums in self.sums.items() if name != INVENTORY)
        return any(rows_naming(sums, wanted).size for sums in telemetry)

    def beside(self, components: Collection[str], other: str) -> bool:
        """Whether `other` shares a row, say a path, with one of the components."""
        wanted, others = frozenset(components), frozenset({other})
        return any(
            np.intersect1d(rows_naming(sums, wanted), rows_naming(sums, others)).size
            for sums in self.sums.values()
        )


def rows_naming(sums: Sums, components: frozenset[str]) -> Rows:
    """The rows of a table that have one of the components among their keys, ascending."""
    found = [_rows_of_key(key, components) for key in sums.keys.values() if not isinstance(key, np.ndarray)]
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def _rows_of_key(key: Paths | Iterable[str], components: frozenset[str]) -> Rows:
    if not isinstance(key, Paths):
        return np.array([row for row, name in enumerate(key) if name in components], np.int64)
    places = [place for name in components if (place := _place(key.names, name)) is not None]
    entries = np.flatnonzero(np.isin(key.indices, places))
    return np.unique(np.searchsorted(key.indptr, entries, side="right") - 1)


def _place(names: tuple[str, ...], name: str) -> int | None:
    place = bisect_left(names, name)
    return place if place < len(names) and names[place] == name else None


def seen(window_hash: str) -> WindowSums | None:
    """Sums stored under a hash; None if there are none."""
    stored = StoredWindow.objects.filter(pk=window_hash).first()
    return None if stored is None else WindowSums(load_sums(bytes(stored.body)))


def windows_before(
    start: datetime, length: timedelta, count: int, first: datetime
) -> list[tuple[datetime, datetime]]:
    """The `count` windows that lead up to `start`, oldest first, none from before `first`."""
    windows = [(start - n * length, start - (n - 1) * length) for n in range(count, 0, -1)]
    return [window for window in windows if window[0] >= first]
