"""Tables of reports: columns that sort by their address, a period to pick, the same rows as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from incidents.domain.csv import inert

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """`name` is the field of a row that it sorts by; figures begin with the largest. Without one it does not."""

    name: str
    title: str
    number: bool = True
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """A column as the page shows it: the address that sorts by it, and how it is sorted now (`aria-sort`)."""

    column: Column
    href: str
    sorted: str


def sorted_rows(
    request: HttpRequest, rows: Iterable[Row], columns: Sequence[Column], usual: str
) -> tuple[list[Row], list[Head]]:
    """Rows by the column that the address names (`sort`, with `-` the other way round), else by `usual`; rows without a
    value come last."""
    rows = list(rows)
    by_name = {one.name: one for one in columns if one.name}
    requested = request.GET.get("sort", "")
    name = requested.removeprefix("-") if requested.removeprefix("-") in by_name else usual
    backwards = requested == f"-{name}"
    down = by_name[name].number != backwards
    known = [one for one in rows if one[name] is not None]
    empty = [one for one in rows if one[name] is None]
    found = sorted(known, key=lambda one: one[name], reverse=down) + empty
    heads = []
    for column in columns:
        here = column.name == name
        direction = f"-{column.name}" if here and not backwards else column.name
        others = {key: value for key, value in request.GET.items() if key not in ("sort", "format")}
        state = ("descending" if down else "ascending") if here else ""
        href = f"?{urlencode({**others, 'sort': direction})}" if column.name else ""
        heads.append(Head(column, href, state))
    return found, heads


def csv_address(request: HttpRequest) -> str:
    """Of the same rows as a file."""
    query = request.GET.copy()
    query["format"] = "csv"
    return f"?{query.urlencode()}"


def csv_answer(name: str, columns: Sequence[str], rows: Iterable[Row]) -> HttpResponse:
    """A file of these fields of rows. Nothing in it is a formula to a spreadsheet."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\r\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({field: inert(row.get(field)) for field in columns})
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8", headers=headers)
