"""Columns to Postgres' binary COPY format and back, a block of memory at a time.

Format: https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-FILE-FORMATS. Every column has a fixed
width and no nulls, so that a table is one structured array.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
from django.db import connection
from numpy.typing import NDArray

SIGNATURE = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"
TO_2000 = 946_684_800_000_000
"""Microseconds from 1970, where our times begin, to 2000, where those of Postgres do."""

_WIRE = {"timestamptz": ">i8", "bigint": ">i8", "integer": ">i4", "double precision": ">f8", "boolean": "u1"}
Columns = Mapping[str, NDArray[np.generic]]


def _layout(columns: Sequence[tuple[str, str]]) -> np.dtype[np.void]:
    parts: list[tuple[str, str]] = [("fields", ">i2")]
    for name, type_ in columns:
        parts += [(f"{name} width", ">i4"), (name, _WIRE[type_])]
    return np.dtype(parts)


def encode(columns: Sequence[tuple[str, str]], values: Columns) -> bytes:
    """The body of a binary COPY; `columns` are names and SQL types, times are microseconds since 1970."""
    layout = _layout(columns)
    rows = np.empty(len(values[columns[0][0]]), layout)
    rows["fields"] = len(columns)
    for name, type_ in columns:
        rows[f"{name} width"] = layout[name].itemsize
        rows[name] = values[name] - TO_2000 if type_ == "timestamptz" else values[name]
    return b"".join((SIGNATURE, rows.data, TRAILER))


def copy_in(table: str, columns: Sequence[tuple[str, str]], values: Columns) -> None:
    """Append rows to a table."""
    listed = ", ".join(f'"{name}"' for name, _ in columns)
    block = io.BytesIO(encode(columns, values))
    with connection.cursor() as cursor, connection.wrap_database_errors:
        cursor.copy_expert(f"COPY {table} ({listed}) FROM STDIN (FORMAT binary)", block, size=2**20)


def copy_out(
    query: str, parameters: Sequence[object], columns: Sequence[tuple[str, str]]
) -> dict[str, NDArray[np.generic]]:
    """The result of a query whose columns have these names and types and no nulls; arrays in native byte
    order."""
    block = io.BytesIO()
    with connection.cursor() as cursor, connection.wrap_database_errors:
        written = cursor.mogrify(query, parameters).decode()
        cursor.copy_expert(f"COPY ({written}) TO STDOUT (FORMAT binary)", block, size=2**20)
    layout = _layout(columns)
    body = block.getbuffer()[len(SIGNATURE) : -len(TRAILER)]
    if len(body) % layout.itemsize:
        raise ValueError("a column of the query has another width than was said, or holds nulls")
    rows = np.frombuffer(body, layout)
    return {name: _native(rows[name], type_) for name, type_ in columns}


def _native(column: NDArray[np.generic], type_: str) -> NDArray[np.generic]:
    native = column.astype(column.dtype.newbyteorder("="))
    return native + np.int64(TO_2000) if type_ == "timestamptz" else native
