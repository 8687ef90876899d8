"""Rows in files as a part of a table of Postgres. Loads the readers of files only where there are some."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from ingest.db.storage import ColdStorageError
from ingest.telemetry.decode.columns import moment
from ingest.telemetry.kinds import Kind
from ingest.telemetry.store.tables import cold_files, columns, table
from ingest.telemetry.store.write import LIST

MOST_GIVEN = 500_000
"""Rows out of files that are given along with a statement."""


def table_source(kind: Kind, region: int, start: datetime, end: datetime) -> str:
    """The kind's table in a FROM, with the region's rows of [start, end) that lie in files: for statements that only
    Postgres can answer. Raises ColdStorageError for more than MOST_GIVEN rows."""
    name, files = table(kind), cold_files(kind, start, end)
    if not files:
        return name
    from ingest.telemetry.cold.read import query_files  # brings pyarrow and DuckDB

    text = f"SELECT * FROM rows LIMIT {MOST_GIVEN + 1}"
    found = query_files(kind, files, region, (start, end), None, (), {}, text, ())
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
