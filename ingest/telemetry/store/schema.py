"""The tables of the kinds, as their declarations say. Migrations hold this SQL written out; a test holds both
equal."""

from __future__ import annotations

import functools

from ingest.telemetry.kinds import Field, Kind

SQL_TYPES = {
    "time": "timestamptz",
    "choice": "integer",
    "id": "uuid",
    "component": "integer",
    "name": "integer",
    "text": "integer",
    "labels": "integer",
    "measures": "integer",
    "numbers": "double precision[]",
    "components": "integer",
    "count": "integer",
    "amount": "double precision",
    "flag": "boolean",
}
"""Texts are numbers into `telemetry_name`, component sets numbers into `telemetry_set`: but for lists of
numbers, a row has a fixed width."""


def table(kind: Kind) -> str:
    return f"telemetry_{kind.name}"


@functools.cache
def columns(kind: Kind) -> tuple[tuple[str, str], ...]:
    """Names and SQL types of the columns that a row brings, in the table's order: lists of numbers last.

    What says when is called `time` in every table.
    """
    return (
        ("time", "timestamptz"),
        ("receipt", "bigint"),
        ("region", "integer"),
        *((field.name, SQL_TYPES[field.type]) for field in _own(kind)),
    )


def _own(kind: Kind) -> tuple[Field, ...]:
    own = [field for field in kind.fields if field.name != kind.time]
    return tuple(sorted(own, key=lambda field: field.type == "numbers"))


def column(kind: Kind, field: str) -> str:
    """What the table calls a field."""
    return "time" if field == kind.time else field


def create_sql(kind: Kind) -> str:
    """The statements that make the kind's table; paste them into a migration when a kind is new."""
    name = table(kind)
    lines = [f'    "{column}" {type_} NOT NULL' for column, type_ in columns(kind)]
    if not kind.is_event:
        lines.append("    id bigint GENERATED ALWAYS AS IDENTITY")
        listed = ",\n".join(lines)
        if kind.is_interval:
            # The first finds what ends after a window's start, the second whether it was told of again.
            index = f'CREATE INDEX {name}_until ON {name} (region, "{kind.end}");\n'
            index += f'CREATE INDEX {name}_since ON {name} (region, "time", "{kind.key}", id DESC);'
            return f"CREATE TABLE {name} (\n{listed}\n);\n{index}\n"
        index = f'CREATE INDEX {name}_in_force ON {name} (region, "{kind.key}", "time" DESC, id DESC);'
        return f"CREATE TABLE {name} (\n{listed}\n);\n{index}\n"
    listed = ",\n".join(lines)
    index = f'CREATE INDEX {name}_time ON {name} USING brin ("time");'
    return f'CREATE TABLE {name} (\n{listed}\n) PARTITION BY RANGE ("time");\n{index}\n'
