"""Data behind evidence: its rows as a file, and the summed window of the analyzer."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from analyzers import queries as analyzers
from frontend.evidence import Piece, csv_cell, rows_of
from frontend.views.pages import page, show
from incidents import queries
from incidents.queries import evidence_file
from ingest.queries import now_utc

ROWS = 50
"""Rows of each sum that the page shows; the file has them all."""
LARGEST_PLACE = 10_000


@page
@require_safe
def attached_csv(_: HttpRequest, number: int, version: int, place: int) -> HttpResponse:
    """The rows of a piece of evidence as it was attached to an incident."""
    if max(version, place) > 2**31 - 1:
        raise Http404("no such piece of evidence")
    pieces = queries.evidence(str(number), everything=True)
    found = next((one for one in pieces if (one.version, one.place) == (version, place)), None)
    if found is None:
        raise Http404("no such piece of evidence")
    return csv_file(f"incident-{number}-{found.title}", *rows_of(found))


@page
@require_safe
def run_csv(_: HttpRequest, id: UUID, place: int) -> HttpResponse:
    """The rows of a piece of evidence of a run's verdict."""
    run = analyzers.runs().filter(pk=id).first()
    verdict = None if run is None else analyzers.verdict(run)
    items = [] if verdict is None else verdict["evidence"]
    if run is None or place >= min(len(items), LARGEST_PLACE):
        raise Http404("no such piece of evidence")
    piece = Piece.of(items[place])
    return csv_file(f"{run.analyzer}-{run.window_end:%Y%m%dT%H%M}-{piece.title}", *rows_of(piece))


@page
@require_safe
def evidence(request: HttpRequest, number: int) -> HttpResponse:
    """The verdicts on an incident as one signed file (`analyzers.runs.evidence_file`)."""
    try:
        body = evidence_file(str(number), now_utc())
    except analyzers.EvidenceExportError as refused:
        messages.error(request, str(refused))
        return redirect("incident", number)
    return _attachment(f"incident-{number}-evidence.json", "application/json", body)


@page
@require_safe
def inputs(request: HttpRequest, id: UUID) -> HttpResponse:
    """The window that a run judged, as its analyzer got it: `?sum=` answers one of its sums as CSV."""
    run = analyzers.runs().filter(pk=id).first()
    if run is None:
        raise Http404("no such run")
    sums = analyzers.stored_sums(run)
    if wanted := request.GET.get("sum"):
        if sums is None or wanted not in sums:
            raise Http404("no such stored sum")
        return csv_file(f"{run.analyzer}-{run.window_end:%Y%m%dT%H%M}-{wanted}", *_all(sums[wanted]))
    shown = [
        {"name": name, "rows": one.rows, "unmatched": one.unmatched, "table": _first(one)}
        for name, one in (sums or {}).items()
    ]
    context = {"run": run, "stored": sums is not None, "sums": shown, "most": ROWS}
    return show(request, "frontend/incident/inputs.html", context, section="runs")


def _first(one: analyzers.Sums) -> dict[str, Any]:
    columns, rows = analyzers.sums_as_rows(one, ROWS)
    return {"columns": columns, "rows": rows}


def _all(one: analyzers.Sums) -> tuple[list[str], list[list[Any]]]:
    return analyzers.sums_as_rows(one)


def csv_file(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> HttpResponse:
    file = f"{slugify(name)[:120] or 'evidence'}.csv"
    response = _attachment(file, "text/csv; charset=utf-8")
    writer = csv.writer(response)
    writer.writerow([csv_cell(name) for name in columns])
    writer.writerows([csv_cell(cell) for cell in row] for row in rows)
    return response


def _attachment(name: str, content_type: str, body: bytes = b"") -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return HttpResponse(body, content_type=content_type, headers=headers)
