"""The tables of the kinds, as their declarations say. Migrations hold this SQL written out; a test holds both
equal."""

from __future__ import annotations

from ingest.telemetry.kinds import Field, Kind

SQL_TYPES = {
    "time": "timestamptz",
    "component": "integer",
    "name": "integer",
    "text": "integer",
    "labels": "integer",
    "components": "integer",
    "count": "integer",
    "amount": "double precision",
    "flag": "boolean",
}
"""Texts are numbers into `telemetry_name`, component sets numbers into `telemetry_set`: a row has a fixed
width."""


def table(kind: Kind) -> str:
    return f"telemetry_{kind.name}"


def columns(kind: Kind) -> tuple[tuple[str, str], ...]:
    """Names and SQL types of the columns that a row brings, in the table's order."""
    return (
        ("time", "timestamptz"),
        ("receipt", "bigint"),
        ("region", "integer"),
        *((field.name, SQL_TYPES[field.type]) for field in _own(kind)),
    )


def _own(kind: Kind) -> tuple[Field, ...]:
    return tuple(field for field in kind.fields if field.name != "time")


def create_sql(kind: Kind) -> str:
    """The statements that make the kind's table; paste them into a migration when a kind is new."""
    name = table(kind)
    lines = [f'    "{column}" {type_} NOT NULL' for column, type_ in columns(kind)]
    if kind.is_state:
        lines.append("    id bigint GENERATED ALWAYS AS IDENTITY")
        listed = ",\n".join(lines)
        index = f'CREATE INDEX {name}_in_force ON {name} (region, "{kind.key}", "time" DESC, id DESC);'
        return f"CREATE TABLE {name} (\n{listed}\n);\n{index}\n"
    listed = ",\n".join(lines)
    index = f'CREATE INDEX {name}_time ON {name} USING brin ("time");'
    return f'CREATE TABLE {name} (\n{listed}\n) PARTITION BY RANGE ("time");\n{index}\n'
