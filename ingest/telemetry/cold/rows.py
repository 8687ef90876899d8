"""Rows of a kind's table as Arrow, a batch at a time, straight from a binary COPY."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from django.db import connection
from numpy.typing import NDArray

from ingest.telemetry.kinds import Kind
from ingest.telemetry.store.tables import columns, table
from ingest.telemetry.store.write import LIST, SIGNATURE, TO_2000, TRAILER, layout_of

BATCH = 131_072
"""Rows of a batch, which is a row group of a file."""
_ARROW = {
    "timestamptz": pa.int64(),
    "bigint": pa.int64(),
    "integer": pa.int32(),
    "double precision": pa.float64(),
    "boolean": pa.bool_(),
    "uuid": pa.binary(16),
    LIST: pa.list_(pa.float64()),
}
_LIST_HEAD = 24
"""Bytes of a list before its elements: its width, dimensions, nulls, type, length and lower bound."""
_ELEMENT = np.dtype([("width", ">i4"), ("value", ">f8")])


def schema_of(kind: Kind) -> pa.Schema:
    """The columns of a kind as the table has them; times are microseconds since 1970."""
    return pa.schema([pa.field(name, _ARROW[type_], nullable=False) for name, type_ in columns(kind)])


def copy_batches(
    kind: Kind, where: str, parameters: Sequence[object], take: Callable[[pa.RecordBatch], object]
) -> None:
    """Hand rows of the kind's table to `take`, in the order of a condition that ends with ORDER BY or in any."""
    listed = ", ".join(f'"{name}"' for name, _ in columns(kind))
    sink = _Batches(kind, take)
    with connection.cursor() as cursor, connection.wrap_database_errors:
        query = cursor.mogrify(f"SELECT {listed} FROM {table(kind)} {where}", parameters).decode()
        cursor.copy_expert(f"COPY ({query}) TO STDOUT (FORMAT binary)", sink)
    sink.flush()


class _Batches:
    """A file that takes the messages of a binary COPY, of which each is one row."""

    def __init__(self, kind: Kind, take: Callable[[pa.RecordBatch], object]) -> None:
        self.kind, self.take = kind, take
        self.rows: list[bytes] = []
        self.begun = False
        fixed = tuple(one for one in columns(kind) if one[1] != LIST)
        self.lists = [name for name, type_ in columns(kind) if type_ == LIST]
        self.layout = layout_of(fixed)
        if len(self.lists) > 1:
            raise ValueError(f"{kind.name} has more than one list, which cannot be copied")

    def write(self, message: bytes) -> int:
        row = message
        if not self.begun:
            self.begun, row = True, message[len(SIGNATURE) :]
        if row and row != TRAILER:
            self.rows.append(row)
            if len(self.rows) == BATCH:
                self.flush()
        return len(message)

    def flush(self) -> None:
        if self.rows:
            rows, self.rows = self.rows, []
            self.take(self._batch(rows))

    def _batch(self, rows: list[bytes]) -> pa.RecordBatch:
        width = self.layout.itemsize
        heads = [row[:width] for row in rows] if self.lists else rows
        packed = np.frombuffer(b"".join(heads), self.layout)
        if len(packed) != len(rows) or not (packed["fields"] == len(columns(self.kind))).all():
            raise ValueError(f"the rows of {self.kind.name} have another width than its columns say")
        arrays = [
            _list_array(rows, width) if type_ == LIST else _array(packed[name], type_)
            for name, type_ in columns(self.kind)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema_of(self.kind))


def _array(column: NDArray[Any], type_: str) -> pa.Array:
    if type_ == "uuid":
        return pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(16), len(column), [None, pa.py_buffer(np.ascontiguousarray(column).tobytes())]
        )
    native = np.ascontiguousarray(column.astype(column.dtype.newbyteorder("=")))
    if type_ == "timestamptz":
        native = native + np.int64(TO_2000)
    return pa.array(native.astype(bool) if type_ == "boolean" else native, _ARROW[type_])


def _list_array(rows: list[bytes], width: int) -> pa.Array:
    elements = [row[width + _LIST_HEAD :] for row in rows]  # of an empty list nothing
    values = np.frombuffer(b"".join(elements), _ELEMENT)["value"].astype(np.float64)
    ends = np.cumsum([len(one) // _ELEMENT.itemsize for one in elements])
    return pa.ListArray.from_arrays(
        pa.array(np.concatenate(([0], ends)), pa.int32()), pa.array(values), type=_ARROW[LIST]
    )
