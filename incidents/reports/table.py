"""A report as CSV: one line an item, one table for all, so that any spreadsheet opens it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

COLUMNS = (
    "section", "name", "region", "team", "severity", "count", "score", "first", "last", "title", "outcome"
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_of(report: Mapping[str, Any]) -> str:
    """Text with a header line. A text that a spreadsheet would take for a formula gets a quote before it."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\r\n")
    writer.writeheader()
    for row in _rows(report):
        writer.writerow({name: _safe(value) for name, value in row.items()})
    return text.getvalue()


def _rows(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for one in report["schedules"]:
        for outcome in ("named", "quiet", "inconclusive", "failed"):
            yield {
                "section": "runs",
                "name": one["schedule"] or one["analyzer"],
                "region": one["region"],
                "count": one[outcome],
                "outcome": outcome,
            }
    for one in report["blamed"]:
        yield {
            "section": "blamed",
            "name": one["component"],
            "region": one["region"],
            "count": one["runs"],
            "score": one["score"],
            "first": one["first"],
            "last": one["last"],
        }
    for section in ("opened", "resolved"):
        for one in report[section]:
            yield {
                "section": section,
                "name": f"#{one['number']}",
                "team": one["team"],
                "severity": one["severity"],
                "first": one["opened_at"],
                "last": one.get("resolved_at"),
                "title": one["title"],
                "outcome": one.get("confirmed_cause"),
            }


def _safe(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
