"""Sums of rows that lie in files, by DuckDB. Nothing here writes."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
from django.db import connection
from numpy.typing import NDArray

from ingest.telemetry.cold.files import ColdStorageError, storage
from ingest.telemetry.cold.rows import copy_batches, schema_of
from ingest.telemetry.decode.columns import microseconds, moment
from ingest.telemetry.kinds import Kind
from ingest.telemetry.store.tables import columns, table
from ingest.telemetry.store.write import LIST

if TYPE_CHECKING:
    import duckdb

CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "threads": 2,
    "temp_directory": tempfile.gettempdir(),
}


_databases: dict[int, duckdb.DuckDBPyConnection] = {}  # by process
_opening = threading.Lock()


def cold_files(kind: Kind, start: datetime, end: datetime) -> list[str]:
    """The files that hold rows of [start, end), as the snapshot of this transaction knows them."""
    if not kind.is_event:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT file FROM telemetry_cold WHERE kind = %s AND state = 'cold' AND start < %s AND until > %s"
            " ORDER BY file",
            (kind.name, end, start),
        )
        return [file for (file,) in cursor.fetchall()]


def query_files(
    kind: Kind,
    names: Sequence[str],
    region: int,
    span: tuple[datetime, datetime],
    hot: tuple[str, Sequence[object]],
    without: Sequence[int],
    tables: Mapping[str, pa.Table],
    text: str,
    parameters: Sequence[object],
) -> dict[str, NDArray[Any]]:
    """The result of a query over the table `rows`: the region's rows of a span in files, but for those of receipts
    `without`, and those still in Postgres (`hot`: the rest of a query). Times are microseconds since 1970."""
    import duckdb  # takes a tenth of a second, and few processes need it

    batches: list[pa.RecordBatch] = []
    copy_batches(kind, *hot, batches.append)
    first, last = map(microseconds, span)
    try:
        with _database().cursor() as session:
            source = _source(session, kind, names)
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


MOST_GIVEN = 500_000
"""Rows out of files that are given along with a statement."""


def table_source(kind: Kind, region: int, start: datetime, end: datetime) -> str:
    """The kind's table in a FROM, with the region's rows of [start, end) that lie in files: for statements that only
    Postgres can answer. Raises ColdStorageError for more than MOST_GIVEN rows."""
    name, files = table(kind), cold_files(kind, start, end)
    if not files:
        return name
    text = f"SELECT * FROM rows LIMIT {MOST_GIVEN + 1}"
    found = query_files(kind, files, region, (start, end), ("WHERE false", ()), (), {}, text, ())
    if len(found["region"]) > MOST_GIVEN:
        raise ColdStorageError(f"more than {MOST_GIVEN:,} rows lie in files; take a shorter window")
    values: list[str] = []
    with connection.cursor() as cursor:
        for one, type_ in columns(kind):
            texts = "timestamptz" if type_ == "timestamptz" else type_
            if type_ == LIST:  # unnest would take the lists apart
                texts = "text"
                given: list[Any] = ["{" + ",".join(map(repr, row.tolist())) + "}" for row in found[one]]
            elif type_ == "timestamptz":
                given = [moment(at) for at in found[one].tolist()]
            elif type_ == "uuid":
                given = [str(UUID(bytes=row.tobytes())) for row in found[one]]
            else:
                given = found[one].tolist()
            values.append(cursor.mogrify(f"%s::{texts}[]", (given,)).decode().replace("%", "%%"))
    listed = ", ".join(f'"{one}"' for one, _ in columns(kind))
    typed = ", ".join(f'"{one}"::{type_}' for one, type_ in columns(kind))
    return (
        f"(SELECT {listed} FROM {name} UNION ALL"
        f" SELECT {typed} FROM unnest({', '.join(values)}) AS file ({listed})) AS {name}"
    )


def _database() -> duckdb.DuckDBPyConnection:
    """An empty database of this process. That of the process that it was forked from has threads that are not here."""
    import duckdb

    with _opening:
        if os.getpid() not in _databases:
            _databases[os.getpid()] = duckdb.connect(":memory:", config=CONFIG)
        return _databases[os.getpid()]


def _source(session: duckdb.DuckDBPyConnection, kind: Kind, names: Sequence[str]) -> str:
    """What the files are called in a query."""
    system, root = storage()
    paths = [f"{root}/{name}" for name in names]
    if isinstance(system, fs.LocalFileSystem):
        listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
        return f"read_parquet([{listed}])"
    # DuckDB reads buckets by an extension that is not in its package; Arrow reads them with its own.
    session.register("files", ds.dataset(paths, schema_of(kind), format="parquet", filesystem=system))
    return "files"


def _native(column: pa.Array) -> NDArray[Any]:
    if pa.types.is_binary(column.type) or pa.types.is_fixed_size_binary(column.type):
        return np.frombuffer(b"".join(column.to_pylist()), "V16")
    return np.asarray(column.to_numpy(zero_copy_only=False))
