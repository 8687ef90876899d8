"""What an analyzer's runs came to over time, and its newest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from analyzers.runs.models import Run

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
        asked: dict[str, Any] = {
            "analyzer": analyzer,
            "since": since,
            "until": since + parts * step,
            "step": step,
        }
        cursor.execute(_COUNTED, asked)
        for at, outcome, count in cursor.fetchall():
            found[(at - since) // step].counts[outcome] = count
    return found


def newest_run(analyzer: str) -> Run | None:
    return Run.objects.filter(analyzer=analyzer).order_by("-created_at").first()
