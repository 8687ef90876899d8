"""Evidence as the pages show it: grouped by the run that made it, charts with their data as a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from incidents.domain.csv import inert
from incidents.queries import Evidence, Incident

TABLE_ROWS = 200
"""Rows of a chart's data that a page carries as a table."""
CLEARED = "Looked into and cleared"
"""The title by which analyzers show what they looked at and do not blame: a component a row."""
WHY_CLEARED = "why it is cleared"
MOST_FIGURES = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of evidence as a verdict holds it."""

    kind: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    chart: Mapping[str, Any]
    text: str

    @staticmethod
    def of(item: Mapping[str, Any]) -> Piece:
        return Piece(
            kind=item["kind"],
            title=item["title"],
            columns=item.get("columns") or [],
            rows=item.get("rows") or [],
            chart=item.get("chart") or {},
            text=item.get("text") or "",
        )


@dataclass(frozen=True, slots=True)
class Group:
    """What one run, or one person (then `finding` is None), attached together, or what a run's verdict shows."""

    version: int
    pieces: Sequence[Evidence | Piece]
    analyzer: str | None
    finding: Mapping[str, Any] | None
    actor: str
    at: datetime

    def renewed(self, finding: Mapping[str, Any], verdict: Mapping[str, Any]) -> Group:
        """The same group with what a later run of the analyzer shows, in the words of its verdict."""
        return replace(self, finding=finding, pieces=[Piece.of(item) for item in verdict["evidence"]])


def grouped(pieces: Iterable[Evidence]) -> list[Group]:
    """Newest first; within a group in the order of attachment."""
    groups: dict[int, list[Evidence]] = {}
    for piece in pieces:
        groups.setdefault(piece.version, []).append(piece)
    return [
        Group(version, of_it, of_it[0].analyzer, of_it[0].finding, of_it[0].actor, of_it[0].at)
        for version, of_it in sorted(groups.items(), reverse=True)
    ]


def latest_of_each(groups: Sequence[Group], leader: str | None) -> tuple[list[Group], list[Group]]:
    """The newest group of each analyzer, the leader's first, and the newest of all if a person attached it; then
    the others. `groups` come newest first.
    """
    current: dict[str | None, Group] = {}
    for group in groups:
        if group.analyzer is not None or not current:
            current.setdefault(group.analyzer, group)
    shown = sorted(current.values(), key=lambda group: group.analyzer != leader)
    versions = {group.version for group in shown}
    return shown, [group for group in groups if group.version not in versions]


def chart_table(spec: Mapping[str, Any]) -> tuple[list[str], list[list[Any]], int]:
    """Columns, rows (at most `TABLE_ROWS`) and the number of all rows of a chart's inline data."""
    rows = _largest(spec)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[row.get(name) for name in columns] for row in rows[:TABLE_ROWS]]
    return columns, cells, len(rows)


def _largest(value: object) -> list[Mapping[str, Any]]:
    """The longest list of objects under `data.values` or `datasets`, wherever it stands."""
    found: list[list[Mapping[str, Any]]] = [[]]
    if isinstance(value, Mapping):
        for name, inner in value.items():
            candidates = [inner] if name == "values" else list(inner.values()) if name == "datasets" else []
            found += [one for one in candidates if _is_rows(one)]
            found.append(_largest(inner))
    elif isinstance(value, list):
        found += [_largest(inner) for inner in value if isinstance(inner, Mapping | list)]
    return max(found, key=len)


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


@dataclass(frozen=True, slots=True)
class Cleared:
    """A component that an analyzer looked into and does not blame, with the reason or the figures that clear it."""

    component: str
    why: str
    figures: tuple[tuple[str, Any], ...]


def cleared(pieces: Iterable[Evidence | Piece]) -> list[Cleared]:
    """In the order of the analyzer, which puts first what came closest."""
    tables = [one for one in pieces if one.kind == "table" and one.title == CLEARED and one.columns]
    found: dict[str, Cleared] = {}
    for table in tables:
        for row in table.rows:
            result = dict(zip(table.columns[1:], row[1:], strict=False))
            why = str(result.pop(WHY_CLEARED, ""))
            figures = tuple((name, value) for name, value in result.items() if value is not None)
            found.setdefault(str(row[0]), Cleared(str(row[0]), why, figures[:MOST_FIGURES]))
    return list(found.values())


def rows_of(piece: Evidence | Piece) -> tuple[list[str], list[list[Any]]]:
    """All that a table or a chart shows, as columns and rows; a text is one cell."""
    if piece.kind == "table":
        return list(piece.columns), [list(row) for row in piece.rows]
    if piece.kind == "chart":
        rows = _largest(piece.chart)
        columns = list(dict.fromkeys(name for row in rows for name in row))
        return columns, [[row.get(name) for name in columns] for row in rows]
    return ["text"], [[piece.text]]


def csv_cell(value: Any) -> Any:
    """As a spreadsheet may open it."""
    return (
        json.dumps(value, ensure_ascii=False) if isinstance(value, list | tuple | Mapping) else inert(value)
    )


@dataclass(frozen=True, slots=True)
class Alternative:
    """A component, how it stands (`not told apart`, `blamed instead`, `also blamed`, `cleared`), and what says so.

    `number` is its own incident, if it has one.
    """

    component: str
    standing: str
    score: float | None
    why: str
    number: int | None = None


def alternatives(
    state: Incident, suspects: Iterable[Mapping[str, Any]], looked_into: Sequence[Cleared]
) -> list[Alternative]:
    """Each component once, at the place that is nearest to blame."""
    found: dict[str, Alternative] = {}
    for name in state.ambiguous_with:
        found.setdefault(name, Alternative(name, "indistinguishable", None, "the data supports both equally"))
    for one in state.opinions.values():
        if one.says == "blames_other" and one.component is not None:
            says = f"{one.analyzer} suspects it instead"
            found.setdefault(one.component, Alternative(one.component, "suspected instead", one.score, says))
    for suspect in suspects:
        name = suspect["component"]
        if not suspect["own"]:
            also = Alternative(
                name, "also suspected", suspect["score"], "separate failure", suspect["number"]
            )
            found.setdefault(name, also)
    for clear in looked_into:
        found.setdefault(clear.component, Alternative(clear.component, "cleared", None, _cleared(clear)))
    found.pop(state.component or "", None)
    return list(found.values())


def _cleared(one: Cleared) -> str:
    return one.why or ", ".join(f"{name} {_figure(value)}" for name, value in one.figures)


def _figure(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
