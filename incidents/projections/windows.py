"""What the latest windows of each schedule blamed, from `analysis.recorded`."""

from __future__ import annotations

from incidents.domain.blame import WINDOWS_WATCHED, ScheduleWindow
from incidents.domain.times import parse_rfc3339
from incidents.projections.models import ScheduleWindowRow
from ingest.queries import Event


def project_window(event: Event) -> None:
    """An inconclusive window says nothing and is not counted; a window run again replaces itself."""
    body = event.body
    if body["schedule"] is None or body["status"] == "inconclusive":
        return
    causes = [sorted({s["component"], *(s.get("ambiguous_with") or ())}) for s in body["suspects"]]
    ScheduleWindowRow.objects.update_or_create(
        schedule=body["schedule"],
        end=parse_rfc3339(body["window"]["end"]),
        defaults={"start": parse_rfc3339(body["window"]["start"]), "run": body["run"], "causes": causes},
    )
    # Counted back from this one: windows that a clock which was wrong ran ahead of time must not push it out.
    until = parse_rfc3339(body["window"]["end"])
    kept = ScheduleWindowRow.objects.filter(schedule=body["schedule"], end__lte=until).order_by("-end")
    old = kept.values_list("pk", flat=True)[KEPT:]
    ScheduleWindowRow.objects.filter(pk__in=list(old)).delete()


KEPT = 2 * WINDOWS_WATCHED
"""More than are counted, so that a window that finishes late still finds its neighbours."""


def windows_of(schedule: str) -> list[ScheduleWindow]:
    rows = ScheduleWindowRow.objects.filter(schedule=schedule)
    return [
        ScheduleWindow(row.start, row.end, tuple(frozenset(cause) for cause in row.causes)) for row in rows
    ]
