"""What the latest windows of each schedule blamed, from `analysis.recorded`."""

from __future__ import annotations

from datetime import datetime

from incidents.domain.incident.finding_placement import WINDOWS_WATCHED, ScheduleWindow
from incidents.domain.time import parse_rfc3339
from incidents.incident.models import ScheduleWindowRow
from ingest.queries import Event

KEPT = 2 * WINDOWS_WATCHED
"""More than are counted, so that a window that finishes late still finds its neighbours."""


def project_window(event: Event) -> None:
    """An inconclusive window says nothing and is not counted; a window run again replaces itself."""
    one = _window(event)
    if one is None:
        return
    ScheduleWindowRow.objects.update_or_create(
        schedule=one.schedule,
        end=one.end,
        defaults={"start": one.start, "run": one.run, "causes": one.causes},
    )
    # Counted back from this one: windows that a clock which was wrong ran ahead of time must not push it out.
    kept = ScheduleWindowRow.objects.filter(schedule=one.schedule, end__lte=one.end).order_by("-end")
    old = kept.values_list("pk", flat=True)[KEPT:]
    ScheduleWindowRow.objects.filter(pk__in=list(old)).delete()


class Folded:
    """In memory what `project_window` makes of the same events in the table."""

    def __init__(self) -> None:
        self._of: dict[str, dict[datetime, ScheduleWindowRow]] = {}

    def add(self, event: Event) -> None:
        one = _window(event)
        if one is None:
            return
        known = self._of.setdefault(one.schedule, {})
        known[one.end] = one
        for end in sorted((end for end in known if end <= one.end), reverse=True)[KEPT:]:
            del known[end]

    def rows(self) -> list[ScheduleWindowRow]:
        return [row for known in self._of.values() for row in known.values()]


def _window(event: Event) -> ScheduleWindowRow | None:
    body = event.body
    if body["schedule"] is None or body["status"] == "inconclusive":
        return None
    return ScheduleWindowRow(
        schedule=body["schedule"],
        start=parse_rfc3339(body["window"]["start"]),
        end=parse_rfc3339(body["window"]["end"]),
        run=body["run"],
        causes=[sorted({s["component"], *(s.get("ambiguous_with") or ())}) for s in body["suspects"]],
    )


def windows_of(schedule: str) -> list[ScheduleWindow]:
    rows = ScheduleWindowRow.objects.filter(schedule=schedule)
    return [
        ScheduleWindow(row.start, row.end, tuple(frozenset(cause) for cause in row.causes)) for row in rows
    ]
