"""Columns to Postgres' binary COPY format and back, a block of memory at a time.

Format: https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-FILE-FORMATS. Every column has a fixed
width and no nulls, so that a table is one structured array; only lists of numbers, which stand last, are joined to it
row by row. They are never copied out: the database unnests them.
"""

from __future__ import annotations

import functools
import io
import itertools
import struct
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from django.db import connection
from django.db.backends.utils import CursorWrapper
from numpy.typing import NDArray

from ingest.telemetry.decode.columns import Numbers

SIGNATURE = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"
TO_2000 = 946_684_800_000_000
"""Microseconds from 1970, where our times begin, to 2000, where those of Postgres do."""

_WIRE = {
    "timestamptz": ">i8",
    "bigint": ">i8",
    "integer": ">i4",
    "double precision": ">f8",
    "boolean": "u1",
    "uuid": "V16",
}
LIST = "double precision[]"
_FLOAT8 = 701  # the type's number in pg_type
Columns = Mapping[str, NDArray[np.generic] | Numbers]


@functools.cache
def _layout(columns: tuple[tuple[str, str], ...]) -> np.dtype[np.void]:
    parts: list[tuple[str, str]] = [("fields", ">i2")]
    for name, type_ in columns:
        parts += [(f"{name} width", ">i4"), (name, _WIRE[type_])]
    return np.dtype(parts)


def encode(columns: Sequence[tuple[str, str]], values: Columns) -> bytes:
    """The body of a binary COPY; `columns` are names and SQL types, times are microseconds since 1970."""
    fixed = tuple(one for one in columns if one[1] != LIST)
    layout = _layout(fixed)
    rows = np.empty(len(values[columns[0][0]]), layout)
    rows["fields"] = len(columns)
    for name, type_ in fixed:
        rows[f"{name} width"] = layout[name].itemsize
        column = values[name]
        rows[name] = column - TO_2000 if type_ == "timestamptz" else column  # type: ignore[operator]
    if len(fixed) == len(columns):
        return b"".join((SIGNATURE, rows.data, TRAILER))
    lists = [_lists(one) for name, _ in columns[len(fixed) :] if isinstance(one := values[name], Numbers)]
    width, packed = layout.itemsize, rows.tobytes()
    heads = (packed[place : place + width] for place in range(0, len(packed), width))
    joined = itertools.chain.from_iterable(zip(heads, *lists, strict=True))
    return b"".join(itertools.chain((SIGNATURE,), joined, (TRAILER,)))


def _lists(column: Numbers) -> Iterator[bytes]:
    """Each row's list as Postgres' binary array: dimensions, no nulls, type, length, lower bound, elements."""
    elements = np.empty(len(column.values), [("width", ">i4"), ("value", ">f8")])
    elements["width"], elements["value"] = 8, column.values
    packed, size = elements.tobytes(), elements.itemsize
    empty = struct.pack(">iiii", 12, 0, 0, _FLOAT8)
    for start, end in itertools.pairwise(column.indptr.tolist()):
        if start == end:
            yield empty
        else:
            body = packed[start * size : end * size]
            yield struct.pack(">iiiiii", 20 + len(body), 1, 0, _FLOAT8, end - start, 1) + body


def copy_in(table: str, columns: tuple[tuple[str, str], ...], values: Columns) -> None:
    """Append rows to a table."""
    with connection.cursor() as cursor:
        copy_encoded(cursor, table, columns, [encode(columns, values)])


def copy_encoded(
    cursor: CursorWrapper,
    table: str,
    columns: tuple[tuple[str, str], ...],
    bodies: Sequence[bytes],
    then: bytes = b"",
) -> None:
    """Append the rows of several encoded bodies to a table with one COPY.

    `then` is a statement that follows in the same journey. Postgres takes what comes in one message for one
    transaction, if none is open: both are committed when this returns, or neither is.
    https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-MULTI-STATEMENT
    """
    joined = bodies[0] if len(bodies) == 1 else _joined(bodies)
    with cursor.db.wrap_database_errors:
        cursor.copy_expert(_copy(table, columns) + then, io.BytesIO(joined), size=2**20)


@functools.cache
def _copy(table: str, columns: tuple[tuple[str, str], ...]) -> bytes:
    listed = ", ".join(f'"{name}"' for name, _ in columns)
    return f"COPY {table} ({listed}) FROM STDIN (FORMAT binary);".encode()


def _joined(bodies: Sequence[bytes]) -> bytes:
    rows = [body[len(SIGNATURE) : -len(TRAILER)] for body in bodies]
    return b"".join((SIGNATURE, *rows, TRAILER))


def copy_out(
    query: str, parameters: Sequence[object], columns: Sequence[tuple[str, str]]
) -> dict[str, NDArray[np.generic]]:
    """The result of a query whose columns have these names and types and no nulls; arrays in native byte
    order."""
    block = io.BytesIO()
    with connection.cursor() as cursor, connection.wrap_database_errors:
        written = cursor.mogrify(query, parameters).decode()
        cursor.copy_expert(f"COPY ({written}) TO STDOUT (FORMAT binary)", block, size=2**20)
    layout = _layout(tuple(columns))
    body = block.getbuffer()[len(SIGNATURE) : -len(TRAILER)]
    if len(body) % layout.itemsize:
        raise ValueError("a column of the query has another width than was said, or holds nulls")
    rows = np.frombuffer(body, layout)
    return {name: _native(rows[name], type_) for name, type_ in columns}


def _native(column: NDArray[np.generic], type_: str) -> NDArray[np.generic]:
    if type_ == "uuid":
        return column
    native = column.astype(column.dtype.newbyteorder("="))
    return native + np.int64(TO_2000) if type_ == "timestamptz" else native
