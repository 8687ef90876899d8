"""Sums of rows that lie in files, by DuckDB. Nothing here writes."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ingest.db.storage import DUCKDB, ColdStorageError, duckdb_source
from ingest.telemetry.cold.rows import copy_batches, schema_of
from ingest.telemetry.decode.columns import microseconds
from ingest.telemetry.kinds import Kind

if TYPE_CHECKING:
    import duckdb

_databases: dict[int, duckdb.DuckDBPyConnection] = {}  # by process
_opening = threading.Lock()


def query_files(
    kind: Kind,
    names: Sequence[str],
    region: int,
    span: tuple[datetime, datetime],
    hot: tuple[str, Sequence[object]] | None,
    without: Sequence[int],
    tables: Mapping[str, pa.Table],
    text: str,
    parameters: Sequence[object],
) -> dict[str, NDArray[Any]]:
    """The result of a query over the table `rows`: the region's rows of a span in files, but for those of receipts
    `without`, and those still in Postgres (`hot`: the rest of a query, if any). Times are microseconds since 1970."""
    import duckdb  # takes a tenth of a second, and few processes need it

    batches: list[pa.RecordBatch] = []
    if hot is not None:
        copy_batches(kind, *hot, batches.append)
    first, last = map(microseconds, span)
    try:
        with _database().cursor() as session:
            source = duckdb_source(session, names, schema_of(kind))
            session.register("hot", pa.Table.from_batches(batches, schema_of(kind)))
            session.register("late", pa.table({"number": pa.array(without, pa.int64())}))
            for name, table in tables.items():
                session.register(name, table)
            late = "AND receipt NOT IN (SELECT number FROM late)" if without else ""
            inside = f'region = {region} AND "time" >= {first} AND "time" < {last} {late}'
            rows = f"SELECT * FROM {source} WHERE {inside}"
            if batches:
                rows += " UNION ALL SELECT * FROM hot"
            session.execute(f"CREATE TEMP VIEW rows AS {rows}")
            found = session.sql(text.replace("%s", "?"), params=list(parameters)).to_arrow_table()
    except (OSError, duckdb.IOException) as error:
        raise ColdStorageError(f"files of old telemetry cannot be read: {error}") from error
    return {name: _native(found.column(name).combine_chunks()) for name in found.column_names}


def _database() -> duckdb.DuckDBPyConnection:
    """An empty database of this process. That of the process that it was forked from has threads that are not here."""
    import duckdb

    with _opening:
        if os.getpid() not in _databases:
            _databases[os.getpid()] = duckdb.connect(":memory:", config=DUCKDB)
        return _databases[os.getpid()]


def _native(column: pa.Array) -> NDArray[Any]:
    if pa.types.is_binary(column.type) or pa.types.is_fixed_size_binary(column.type):
        return np.frombuffer(b"".join(column.to_pylist()), "V16")
    return np.asarray(column.to_numpy(zero_copy_only=False))
