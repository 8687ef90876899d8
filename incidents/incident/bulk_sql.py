"""Many rows of one table with one statement and one value: an array of JSON, which the database takes apart.

Django's bulk_create writes a literal for each value of each row; of a thousand incidents that are called for at once,
that cost more than everything that is decided about them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, models

Row = Mapping[str, Any]
"""By column. All rows of one call have the same columns."""
MOST: Final = 5_000
"""Rows of one statement."""


class _Encoder(DjangoJSONEncoder):
    """Times whole: Django's own leave out what is smaller than a millisecond."""

    def default(self, o: Any) -> Any:
        return o.isoformat() if hasattr(o, "isoformat") else super().default(o)


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


def _named(names: Sequence[str] | Row) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _execute(sql: str, rows: Sequence[Row]) -> None:
    with connection.cursor() as cursor:
        for first in range(0, len(rows), MOST):
            part = list(rows[first : first + MOST])
            cursor.execute(sql, (json.dumps(part, cls=_Encoder, ensure_ascii=False),))
