"""Results of finished runs: verdicts, late rows, and outcomes of an analyzer over time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from analyzers.registry import UnknownAnalyzerError, installed
from analyzers.runs import scheduler, windows
from analyzers.runs.execution import FINDING, RECORDED
from analyzers.runs.models import Run, State, StoredVerdict
from ingest import queries as ingest
from ingest.queries import Position, begun_streams, read_stream, rfc3339


def verdict(run: Run) -> dict[str, Any] | None:
    """The whole verdict of a run, None while it has none.

    Once it is no longer kept, it is read from the log, with the evidence of its findings; a run that reported none
    then has none. A repetition that came to another verdict than the first has nothing left.
    """
    if not run.verdict_hash:
        return None
    stored = StoredVerdict.objects.filter(pk=run.verdict_hash).first()
    found: dict[str, Any] | None = _recorded(run) if stored is None else json.loads(bytes(stored.body))
    if found is not None:
        found.setdefault("assumptions", [])  # verdicts of before there were any
        found["measures"]["seconds"] = run.seconds
    return found


def _recorded(run: Run) -> dict[str, Any] | None:
    """The verdict as the events of the run tell it."""
    if run.repeats is not None:
        return _recorded(run.repeats) if run.identical else None
    events = read_stream(run.stream)
    body = next((event.body for event in events if event.type == RECORDED.name), None)
    if body is None:
        return None
    evidence: list[Any] = next((e.body["evidence"] for e in events if e.type == FINDING.name), [])
    names = ("analyzer", "version", "params", "window", "status", "reason", "suspects")
    later = {"assumptions": body.get("assumptions", []), "measures": dict(body["measures"])}
    return {**{name: body[name] for name in names}, **later, "evidence": evidence}


def is_repeatable(run: Run) -> bool:
    """Whether a run that is done can be done again: its version is installed, and all that it read is still kept."""
    return run.state == State.DONE and is_installed(run) and windows.has_stored_windows(run)


def is_installed(run: Run) -> bool:
    """Whether the version of the analyzer that judged is the one that would judge now."""
    there = installed().get(run.analyzer)
    return there is not None and there.version == run.version


def late_rows(run: Run) -> list[dict[str, Any]]:
    """Rows that came for the run's window after it was read, by receipt; they are in no verdict of this run."""
    if not run.input_position or run.repeats is not None:
        return []
    try:
        kinds = scheduler.kinds_read(run.analyzer, run.input)
    except UnknownAnalyzerError:
        return []
    after = Position.parse(run.input_position)
    found = ingest.late_rows(kinds, run.region, run.window_start, run.window_end, after)
    return [
        {
            "kind": one.kind,
            "receipt": one.receipt,
            "rows": one.rows,
            "first": rfc3339(one.first),
            "last": rfc3339(one.last),
            "received_at": rfc3339(one.received_at),
        }
        for one in found
    ]


def runs() -> QuerySet[Run]:
    """All runs, newest first."""
    return Run.objects.select_related("schedule").order_by("-created_at", "-id")


def runs_with_window_ending(start: datetime, end: datetime, upto: Position) -> Sequence[Run]:
    """First runs (no repetitions) whose windows end in `[start, end)`, in that order, and that the log holds up to a
    position."""
    found = Run.objects.filter(repeats=None, window_end__gte=start, window_end__lt=end)
    runs = list(found.order_by("window_end", "created_at"))
    recorded = begun_streams([run.stream for run in runs], upto)
    return [run for run in runs if run.stream in recorded]


def judged_until(region: str, at: datetime) -> datetime | None:
    """End of the latest window of a region that any schedule had judged at a moment; None where there is none."""
    judged = Run.objects.filter(
        repeats=None, schedule_key__isnull=False, state=State.DONE, status__in=("named", "quiet")
    )
    found = judged.filter(region=region, window_end__lte=at, finished_at__lte=at).order_by("-window_end")
    return found.values_list("window_end", flat=True).first()


def judged_over(region: str | None, start: datetime, end: datetime) -> Sequence[Run]:
    """First runs of schedules that reached a verdict over a window that overlaps `[start, end)`, oldest first.

    A region of None is every region.
    """
    found = Run.objects.filter(
        repeats=None,
        schedule_key__isnull=False,
        state=State.DONE,
        status__in=("named", "quiet"),
        window_start__lt=end,
        window_end__gt=start,
    )
    if region is not None:
        found = found.filter(region=region)
    return list(found.order_by("window_end", "created_at"))


_COUNTED = """
    SELECT date_bin(%(step)s, created_at, %(since)s) AS at,
           CASE WHEN state = 'done' THEN status WHEN state = 'failed' THEN 'failed' ELSE 'unfinished' END AS outcome,
           count(*)
    FROM runs_run
    WHERE analyzer = %(analyzer)s AND created_at >= %(since)s AND created_at < %(until)s AND repeats_id IS NULL
    GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Runs asked for in `[start, end)`, by outcome: named, quiet, inconclusive, failed or unfinished."""

    start: datetime
    end: datetime
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.counts.total()


def outcomes(analyzer: str, since: datetime, step: timedelta, parts: int) -> list[Outcomes]:
    """`parts` stretches of `step` from `since` on, oldest first; repetitions are not counted."""
    found = [Outcomes(since + part * step, since + (part + 1) * step) for part in range(parts)]
    with connection.cursor() as cursor:
        requested: dict[str, Any] = {
            "analyzer": analyzer,
            "since": since,
            "until": since + parts * step,
            "step": step,
        }
        cursor.execute(_COUNTED, requested)
        for at, outcome, count in cursor.fetchall():
            found[(at - since) // step].counts[outcome] = count
    return found


def newest_run(analyzer: str) -> Run | None:
    return Run.objects.filter(analyzer=analyzer).order_by("-created_at").first()
