"""The database of a process: its name, whether it is gone, its clock, and transactions that threads share.

Time is that of Postgres' clock, which all processes of all machines share. `ingest.db.server_watch` measures by how
much the clock of this machine differs. Below TRUSTED the local clock is used as it is, so that processes of one machine
agree to the microsecond; above, the difference is added.

Group commit: what arrives while a transaction is at work is done by the next one, together. The idea is that of every
log manager (Gray and Reuter, Transaction Processing, 1993, section 9.5), brought to the threads of one process: the
first to come leads, those who come meanwhile form the next group, led by the first of them. Who is alone goes at once.
In company a leader waits for those who were there a moment ago, because senders whose bodies were stored together come
back together; without that two groups take turns, each waiting out the other's flush of the disk.

Batches: one that cannot go on is found and named, and the others of its batch go on."""

from __future__ import annotations

import io
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, TypeVar

import msgspec
import structlog
from django.contrib.postgres.fields import ArrayField
from django.core.serializers.json import DjangoJSONEncoder
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
    connections,
    models,
)
from django.db.models import Q

TRUSTED_FOR = 1.0
"""Seconds for which a connection that was used is taken to be alive."""

_connection = threading.local()  # as Django's connections are


def name() -> str:
    """As every thread's connection has it, without looking for this thread's: bodies ask for it several times each."""
    return str(connections.settings[DEFAULT_DB_ALIAS]["NAME"])


def is_lost(error: BaseException | None) -> bool:
    """Whether the error says that the server is gone or going, or takes nothing for a while.

    It is read-only where an administrator or a full disk wants it so; a process that stood still has lost its turn.
    What else a server refuses (a row too long for an index, a statement that takes too long) it would refuse again.
    """
    code = getattr(getattr(error, "__cause__", None), "pgcode", None)
    if isinstance(error, InternalError):
        return code in ("25006", "25P03")
    if not _is_bare(error) and not isinstance(error, (OperationalError, InterfaceError)):
        return False
    return code is None or code.startswith(("08", "57P"))


def is_away(error: BaseException | None) -> bool:
    """Whether the same may be asked for later: the server is lost, or refused it as it was busy."""
    return is_lost(error) or isinstance(error, (OperationalError, InterfaceError))


def is_full(error: BaseException | None) -> bool:
    """Whether the server had no room left on its disk (SQLSTATE 53100)."""
    return getattr(getattr(error, "__cause__", None), "pgcode", None) == "53100"


def _is_bare(error: BaseException | None) -> bool:
    """A driver whose server goes in the middle of an answer may say no more than that there was an error."""
    return type(error) is DatabaseError and error.__cause__ is not None


def is_deadlock(error: BaseException) -> bool:
    """Whether the server undid this transaction because others would have waited for it for ever, as it for them."""
    return getattr(error.__cause__, "pgcode", None) == "40P01"


def note_use() -> None:
    """The connection of this thread answered just now. A thread whose body was stored by another one did not use its
    own."""
    _connection.used = time.monotonic()


def skip_health_check() -> None:
    """Do not ask a connection that was used a moment ago. If it died in that moment the sender gets a 503 and comes
    back."""
    if time.monotonic() - getattr(_connection, "used", -TRUSTED_FOR) < TRUSTED_FOR:
        connections[DEFAULT_DB_ALIAS].health_check_done = True  # type: ignore[attr-defined]


TRUSTED = 1.0
"""Seconds of difference that are not corrected: several times what a measurement is wrong by."""
WRONG = 5.0
"""Seconds of difference above which the clock of this machine counts as wrong."""
SAMPLES = 10
"""Measurements among which the one with the shortest journey counts (as in NTP's clock filter, RFC 5905, 10)."""

_measured: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
os.register_at_fork(after_in_child=_measured.clear)


def measured(server: datetime, before: float, after: float) -> None:
    """Take in what the server's clock said between two readings of `time.time()`."""
    skew = (before + after) / 2 - server.timestamp()
    if _measured and abs(skew - _measured[-1][1]) > TRUSTED + (after - before):
        _measured.clear()  # one of the clocks was set
    _measured.append((after - before, skew))


def skew() -> float | None:
    """Seconds by which this machine's clock is ahead of Postgres'; None while it was not measured."""
    return min(list(_measured))[1] if _measured else None


def is_wrong() -> bool:
    """Whether this machine's clock differs by more than WRONG seconds."""
    return abs(skew() or 0.0) > WRONG


def local_time() -> float:
    """Seconds of the epoch by the clock of this machine."""
    return time.time()


def now() -> datetime:
    """The time by Postgres' clock, in UTC; by the local one while it was not measured."""
    local, ahead = local_time(), skew() or 0.0
    at = datetime.fromtimestamp(local, UTC)
    return at if abs(ahead) <= TRUSTED else at - timedelta(seconds=ahead)


T = TypeVar("T")
R = TypeVar("R")


GATHERING = 2
"""Durations of the last group that a leader waits for those who were there: they come back one after the other, because
the threads of a process take turns. With one, groups were half as large and an alert cost a quarter more."""


class GroupCommitError(Exception):
    """The thread that worked for the group failed; what became of the group is not known here."""


class GroupCommit(Generic[T, R]):
    """Hands what several threads bring to `commit`, up to `most` pieces at a time, one call after the other.

    `commit` gets the pieces in the order in which they came and answers with one result for each.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[T]], Sequence[R]],
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._commit = commit
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: list[_Seat[T, R]] = []
        self._at_work = False
        self._gathering = False
        self._company = 0  # how many there were when the last group was done
        self._until = 0.0  # when those of them who have not come back are no longer waited for

    def submit(self, piece: T) -> R:
        """The result for this piece, from this thread or from one that came before.

        Raises what `commit` raises when this thread called it, and GroupCommitError when another one did.
        """
        seat = _Seat[T, R](piece)
        with self._lock:
            self._waiting.append(seat)
            seat.leads = not self._at_work
            self._at_work = True
            if self._gathering and len(self._waiting) >= min(self._company, self._most):
                self._gathering = False
                self._waiting[0].turn.release()
        if not seat.leads:
            seat.turn.acquire()
        if seat.leads:
            self._collect_group(seat)
            self._lead()
        return seat.result()

    def _collect_group(self, leader: _Seat[T, R]) -> None:
        """Wait for those who were there when the last group was done, for a while."""
        with self._lock:
            patience = self._until - self._clock()
            if patience <= 0 or len(self._waiting) >= min(self._company, self._most):
                return
            self._gathering = True
        leader.turn.acquire(timeout=patience)

    def _lead(self) -> None:
        began = self._clock()
        with self._lock:
            self._gathering = False
            group, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        try:
            results = self._commit([seat.piece for seat in group])
            for seat, result in zip(group, results, strict=True):
                seat.results.append(result)
        finally:
            ended = self._clock()
            with self._lock:
                self._at_work = bool(self._waiting)
                self._company = len(group) + len(self._waiting)
                self._until = ended + GATHERING * (ended - began)
                next_leader = self._waiting[:1]
            for seat in next_leader:
                seat.leads = True
            for seat in (*next_leader, *group[1:]):
                seat.turn.release()


class _Seat(Generic[T, R]):
    """One thread's place in the queue. The leader of a group sits first in it."""

    __slots__ = ("leads", "piece", "results", "turn")

    def __init__(self, piece: T) -> None:
        self.piece = piece
        self.leads = False
        self.results: list[R] = []
        self.turn = threading.Lock()
        self.turn.acquire()

    def result(self) -> R:
        if not self.results:
            raise GroupCommitError
        return self.results[0]


# Rows in bulk
# ----------------------------------------------------------------------------------------------------------
Row = Mapping[str, Any]
"""By column. All rows of one call have the same columns."""
MOST_ROWS: Final = 5_000
"""Rows of one statement."""


class _Encoder(DjangoJSONEncoder):
    """Times whole: Django's own leave out what is smaller than a millisecond."""

    def default(self, o: Any) -> Any:
        return o.isoformat() if hasattr(o, "isoformat") else super().default(o)


_encode_lines: Final = msgspec.json.Encoder(enc_hook=_Encoder().default).encode_lines


def insert(model: type[models.Model], rows: Sequence[Row]) -> None:
    """In the order given. Columns that are not named are left to the database: only an id may be."""
    _write(model, rows, "")


def insert_new(model: type[models.Model], rows: Sequence[Row]) -> None:
    """As `insert`; a row that a unique constraint refuses is left out."""
    _write(model, rows, " ON CONFLICT DO NOTHING")


def upsert(model: type[models.Model], rows: Sequence[Row], unique: Sequence[str]) -> None:
    """As `insert`; where there is a row with the same values in `unique`, its other columns become these."""
    if rows:
        changed = ", ".join(f'"{name}" = EXCLUDED."{name}"' for name in rows[0] if name not in unique)
        _write(model, rows, f" ON CONFLICT ({_named(unique)}) DO UPDATE SET {changed}")


def update(model: type[models.Model], rows: Sequence[Row], key: str) -> None:
    """The columns of rows that there are, found by `key`."""
    if not rows:
        return
    table = f'"{model._meta.db_table}"'
    changed = ", ".join(f'"{name}" = new."{name}"' for name in rows[0] if name != key)
    _execute(
        f"UPDATE {table} SET {changed} FROM json_populate_recordset(NULL::{table}, %s) AS new"
        f' WHERE {table}."{key}" = new."{key}"',
        rows,
    )


class CopyText(msgspec.Struct, frozen=True):
    """Rows in the text format of COPY."""

    columns: tuple[str, ...]
    text: str


def copy(table: str, rows: Sequence[CopyText]) -> None:
    """With COPY into `table`, in the order given; all have the same columns."""
    if rows:
        content = "\n".join(one.text for one in rows).encode()
        with connection.cursor() as cursor:
            # In one piece: for each read another thread may have to give way first.
            sql = f'COPY "{table}" ({_named(rows[0].columns)}) FROM STDIN'
            cursor.copy_expert(sql, io.BytesIO(content), len(content))


def copy_text(model: type[models.Model], rows: Mapping[str, Sequence[Any]]) -> CopyText:
    """By column of the model, its value in each row."""
    of = {field.column: field for field in model._meta.concrete_fields}
    columns = [_copied(of[name], values) for name, values in rows.items()]
    return CopyText(tuple(rows), "\n".join(map("\t".join, zip(*columns, strict=True))))


# PostgreSQL documentation, COPY, text format.
_NULL: Final = "\\N"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _copied(field: models.Field[Any, Any], values: Sequence[Any]) -> Sequence[str]:
    """The values of a column as COPY reads them."""
    known = [value for value in values if value is not None]
    texts = _texts(field, known) if known else []
    if len(known) == len(values):
        return texts
    following = iter(texts)
    return [_NULL if value is None else next(following) for value in values]


def _texts(field: models.Field[Any, Any], values: list[Any]) -> list[str]:
    """At once where that is possible: a call for each value took several times as long."""
    if isinstance(field, models.JSONField):
        lines = _encode_lines(values).decode()
        return lines.replace("\\", "\\\\").split("\n")[:-1]
    if isinstance(field, models.DateTimeField):
        return msgspec.json.encode(values).decode()[2:-2].split('","')
    if isinstance(field, ArrayField):
        values = list(map(_array, values))
    elif not isinstance(field, models.CharField | models.TextField):
        return list(map(str, values))
    return list(map(_escaped, values)) if _is_special("".join(values)) else values


def _escaped(value: str) -> str:
    return value.translate(_ESCAPES) if _is_special(value) else value


def _is_special(value: str) -> bool:
    """Whether it needs escapes. Four searches: a regular expression took fifty times as long."""
    return "\\" in value or "\t" in value or "\n" in value or "\r" in value


def _array(values: Sequence[str]) -> str:
    quoted = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return "{" + ",".join(f'"{value}"' for value in quoted) + "}"


def plain_array(elements: Iterable[str]) -> str:
    """Array of elements that need no quotes, such as ids, as Postgres reads it."""
    return "{" + ",".join(elements) + "}"


def columns(row: models.Model, names: Sequence[str]) -> dict[str, Any]:
    """Some columns of a model's instance."""
    return {name: getattr(row, name) for name in names}


def _write(model: type[models.Model], rows: Sequence[Row], conflict: str) -> None:
    if not rows:
        return
    table, named = f'"{model._meta.db_table}"', _named(rows[0])
    _execute(
        f"INSERT INTO {table} ({named}) SELECT {named} FROM json_populate_recordset(NULL::{table}, %s){conflict}",
        rows,
    )


def _named(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _execute(sql: str, rows: Sequence[Row]) -> None:
    with connection.cursor() as cursor:
        for first in range(0, len(rows), MOST_ROWS):
            part = list(rows[first : first + MOST_ROWS])
            cursor.execute(sql, (json.dumps(part, cls=_Encoder, ensure_ascii=False),))


# Batches
# ----------------------------------------------------------------------------------------------------------
Id = TypeVar("Id", bound=Hashable)


def in_halves(items: Sequence[Id], do: Callable[[Sequence[Id]], int], failed: dict[Id, Exception]) -> int:
    """`do`, which is one transaction, with all of them; the sum of what it returned.

    One that cannot go on keeps no other from it: halves that fail are halved until it is alone, and it is in `failed`
    then, with what it raised. Raises only what says that the database is gone, which is true of all of them.
    """
    try:
        return do(items)
    except Exception as error:  # whatever one of them raises, the others go on
        if is_lost(error):
            raise
        if len(items) > 1:
            half = len(items) // 2
            return in_halves(items[:half], do, failed) + in_halves(items[half:], do, failed)
        failed[items[0]] = error
        return 0


class Backoff:
    """By id those that could not go on, for `seconds`: so that they are not in everybody's way each time. One process
    knows them; `clock` counts seconds, so that a clock on the wall that is set back frees none too late."""

    def __init__(self, logger: str, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._seconds, self._clock = structlog.get_logger(logger), seconds, clock
        self._until: dict[str, float] = {}

    def ids(self) -> list[str]:
        """Those that are passed over now."""
        now = self._clock()
        self._until = {id_: until for id_, until in self._until.items() if until > now}
        return list(self._until)

    def add(self, failed: Mapping[str, Exception]) -> None:
        """Tells of each that failed, and raises what the first one raised; call it when all others have gone on."""
        for id_, error in failed.items():
            self._log.error("what was due failed", id=id_, exc_info=error)
            self._until[id_] = self._clock() + self._seconds
        for error in failed.values():
            raise error


def lease_is_over(now: datetime, span: timedelta) -> Q:
    """Rows whose lease of at most `span` has ended."""
    # No lease reaches that far: the clock was set back since. Clocks of machines differ by less than a lease.
    return Q(lease_until__lt=now) | Q(lease_until__gt=now + 2 * span)


@contextmanager
def alone(name: str) -> Iterator[bool]:
    """Whether this process has the session lock of that name; no other one has it until the block ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtext(%s))", (name,))
        (is_alone,) = cursor.fetchone()
    try:
        yield is_alone
    finally:
        if is_alone:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(hashtext(%s))", (name,))
