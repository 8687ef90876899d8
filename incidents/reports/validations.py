"""Network changes of a period that were validated: each with its verdict, the violated first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from incidents.domain.routing.rules import Subject, team_of
from incidents.domain.values import rfc3339
from incidents.teams.models import routing_table
from ingest.queries import Position, ReportedChange, changes, moment_of

MOST_READ, MOST_LISTED = 1_000, 15
Json = dict[str, Any]


def validations(team: str, start: datetime, end: datetime, upto: Position) -> Json | None:
    """Changes made in `[start, end)` by their latest verdict up to a position; with a team those of its components.
    None where none was validated. A change names no region, so a report of one region has them all."""
    known_by = moment_of(upto)
    if known_by is None:
        return None
    found = changes(start, end, limit=MOST_READ, known_by=known_by, validated=True)
    mine = _owned(team, (one for one in found if one.at < end))
    if not mine:
        return None
    lines = sorted((_line(one) for one in mine), key=lambda one: -one["classes_violated"])
    violated = sum(one["verdict"] == "violated" for one in lines)
    return {"validated": len(lines), "violated": violated, "changes": lines[:MOST_LISTED]}


def _owned(team: str, found: Iterable[ReportedChange]) -> list[ReportedChange]:
    if not team:
        return list(found)
    table = routing_table()
    return [one for one in found if one.component and team_of(Subject(one.component), table).slug == team]


def _line(one: ReportedChange) -> Json:
    verdict = one.validation or {}
    first: Mapping[str, Any] = next(iter(verdict["violations"]), {})
    return {
        "change": one.id,
        "summary": one.summary,
        "component": one.component,
        "at": rfc3339(one.at),
        "verdict": verdict["verdict"],
        "classes": verdict["classes"],
        "classes_violated": verdict["classes_violated"],
        "rule": first.get("rule"),
        "witness": first.get("witness", []),
        "expected": first.get("expected"),
    }
