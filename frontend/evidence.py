"""Evidence as the pages show it: grouped by the run that made it, charts with their data as a table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from incidents.domain.csv import inert
from incidents.domain.incident.state import Failure
from incidents.domain.values import parse_rfc3339
from incidents.onsets.queries import Beginning
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
    """Evidence attached together by one run, or by one person (then `finding` is None), or shown by a run's verdict."""

    version: int
    pieces: Sequence[Evidence | Piece]
    analyzer: str | None
    finding: Mapping[str, Any] | None
    actor: str
    at: datetime

    @property
    def lead(self) -> int:
        """The place of the first chart, which is shown unfolded; of the first piece where there is none."""
        return next((place for place, one in enumerate(self.pieces) if one.kind == "chart"), 0)

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


@dataclass(frozen=True, slots=True)
class Slice:
    """An amount between two moments: `own` of the incident's cause, `total` of everything."""

    start: datetime
    end: datetime
    own: float
    total: float


def slices(pieces: Iterable[Evidence | Piece], cause: Container[str]) -> list[Slice]:
    """The bars of the first chart over time, oldest first; empty without such a chart.

    Where no part of the chart is named like the cause, everything counts as its own.
    """
    for piece in pieces:
        rows = _largest(piece.chart) if piece.kind == "chart" else []
        if (
            not rows
            or not rows[0].keys() >= {"time", "until"}
            or rows[0].keys().isdisjoint({"amount", "high"})
        ):
            continue
        found: dict[tuple[datetime, datetime], list[float]] = {}
        named = any(_part(row) in cause for row in rows)
        for row in rows:
            sums = found.setdefault((parse_rfc3339(row["time"]), parse_rfc3339(row["until"])), [0.0, 0.0])
            amount = float(row["amount"] if "amount" in row else row["high"] - row["low"])
            sums[0] += amount if not named or _part(row) in cause else 0.0
            sums[1] += amount
        return [Slice(start, end, own, total) for (start, end), (own, total) in sorted(found.items())]
    return []


def counted(spans: Iterable[tuple[datetime, datetime]]) -> list[Slice]:
    """Number of spans that last, from one change of it to the next."""
    changes: Counter[datetime] = Counter()
    for start, end in spans:
        changes[start] += 1
        changes[end] -= 1
    edges, count, found = sorted(changes), 0, []
    for start, end in pairwise(edges):
        count += changes[start]
        if count:
            found.append(Slice(start, end, count, count))
    return found


def _part(row: Mapping[str, Any]) -> str:
    return str(row.get("where", row.get("part", "")))


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
    status: str
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
        if one.stance == "blames_other" and one.component is not None:
            reason = f"{one.analyzer} suspects it instead"
            found.setdefault(
                one.component, Alternative(one.component, "suspected instead", one.score, reason)
            )
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


# Strip chart
# ----------------------------------------------------------------------------------------------------------
SHORTEST = timedelta(minutes=5)
ONSETS = {"metrics": "metric shifted", "alert": "first alert"}
"""Names of an onset mark, by the source that dates it."""
LEAST_WIDTH = 0.4
"""Percent of the strip that a bar takes, be it ever so short."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment of the strip chart, `place` percent from its left; `kind` is a class of its style."""

    kind: str
    text: str
    at: datetime
    place: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A span of the strip chart in percent of its width and height; `tone` is own, other or missing."""

    x: float
    width: float
    height: float
    tone: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Times at which an incident's failure was seen, with the events in between, oldest first."""

    bars: Sequence[Bar]
    marks: Sequence[Mark]
    start: datetime
    end: datetime


def strip_of(
    state: Incident, failure: Failure, began: Beginning | None, spans: Sequence[Slice], end: datetime
) -> Strip:
    """From the first moment that is known of to `end`; without `spans` the bar lasts as long as the failure did.

    `began` None: onset and changes are not looked up, the first failure stands for the onset.
    """
    marks = [] if began is None else [("change", one.change.summary, one.change.at) for one in began.changes]
    first, source = _onset_shown(state, began)
    last = end if failure.state == "failing" else state.last_failure or first
    if first < state.opened_at:
        marks.append(("onset", ONSETS.get(source, "first failure"), first))
    marks += [
        (name, name, at)
        for name, at in (
            ("opened", state.opened_at),
            ("acknowledged", state.acknowledged_at),
            ("resolved", state.resolved_at),
        )
        if at is not None
    ]
    if not spans and failure.state != "unknown":
        spans = [Slice(first, max(first, last), 1.0, 1.0)]
    start = min(end - SHORTEST, *(at for *_, at in marks), *(one.start for one in spans))
    most = max((one.total for one in spans), default=1.0) or 1.0

    def place(at: datetime) -> float:
        return round(100 * min(1.0, max(0.0, (at - start) / (end - start))), 2)

    def bar(one: Slice, amount: float, tone: str) -> Bar:
        x = min(place(one.start), 100 - LEAST_WIDTH)
        width = round(max(LEAST_WIDTH, place(one.end) - x), 2)
        return Bar(x, width, round(100 * amount / most, 1), tone)

    bars = [bar(one, one.total, "other") for one in spans if one.total > one.own]
    bars += [bar(one, one.own, "own") for one in spans if one.own]
    if failure.state == "no_data" and failure.since is not None:
        bars.append(bar(Slice(failure.since, end, 0.0, most), most, "missing"))
    ordered = sorted(marks, key=lambda one: one[2])
    return Strip(bars, [Mark(kind, text, at, place(at)) for kind, text, at in ordered], start, end)


def _onset_shown(state: Incident, began: Beginning | None) -> tuple[datetime, str]:
    """The moment of the onset on the strip, and the source that dates it."""
    if began is None:
        return state.failing_since or state.opened_at, "failure"
    onset = began.onset
    return (onset.at if onset.source == "metrics" else state.failing_since or onset.at), onset.source
