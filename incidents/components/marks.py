"""Which components are blamed, and when: incidents that suspect them and runs that named them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db.models import Q
from django.db.models.functions import Coalesce, Least

from analyzers.queries import runs
from incidents.incident.models import IncidentRow

MOST = 5_000
"""Incidents or runs that one grid looks at, the latest."""


@dataclass(frozen=True, slots=True)
class Mark:
    """`by` is an incident (its `number` set) or an analyzer; `score` is how sure it was, 0 to 1."""

    component: str
    by: Literal["incident", "run"]
    title: str
    number: int | None
    run: str | None
    score: float | None


Span = tuple[datetime, datetime]


def marks(region: str, components: Collection[str], spans: Sequence[Span]) -> list[list[Mark]]:
    """Of each span `(start, end]` what blames these components: incidents that were not resolved in it, from when their
    cause began to fail, and runs whose windows ended in it. Incidents first, then the surest."""
    wanted = frozenset(components)
    if not wanted or not spans:
        return [[] for _ in spans]
    found: list[list[Mark]] = [[] for _ in spans]
    first, last = spans[0][0], spans[-1][1]
    for (since, until), mark in [
        *_incidents(region, wanted, first, last),
        *_runs(region, wanted, first, last),
    ]:
        for place, (start, end) in enumerate(spans):
            # What begins as a step ends belongs to the next one; a run is told of at the end of its window.
            begun = since < end or until == end
            if begun and until > start and not any(_same(mark, one) for one in found[place]):
                found[place].append(mark)
    return [
        sorted(one, key=lambda mark: (mark.by != "incident", -(mark.score or 0.0), mark.component))
        for one in found
    ]


def _same(one: Mark, other: Mark) -> bool:
    """The windows of one analyzer overlap: that it named a component is told once, with the latest."""
    return (one.component, one.by, one.title, one.number) == (
        other.component,
        other.by,
        other.title,
        other.number,
    )


def _incidents(
    region: str, wanted: frozenset[str], first: datetime, last: datetime
) -> list[tuple[Span, Mark]]:
    rows = IncidentRow.objects.annotate(since=Least(Coalesce("failing_since", "opened_at"), "opened_at"))
    rows = rows.filter(
        Q(region=region) | Q(region=None),
        Q(resolved_at=None) | Q(resolved_at__gt=first),
        since__lte=last,
        merged_into=None,
        cause__overlap=sorted(wanted),
    )
    found = []
    for row in rows.order_by("-number")[:MOST]:
        # Of an ambiguous group the suspect alone is marked: the incident says what else it could be.
        named = {row.component} if row.component in wanted else wanted.intersection(row.cause)
        until = row.resolved_at or datetime.max.replace(tzinfo=last.tzinfo)
        for name in sorted(named):
            mark = Mark(name, "incident", row.title, row.number, None, row.confidence)
            found.append(((row.since, until), mark))
    return found


def _runs(region: str, wanted: frozenset[str], first: datetime, last: datetime) -> list[tuple[Span, Mark]]:
    named = runs().filter(
        region=region, repeats=None, status="named", window_end__gt=first, window_end__lte=last
    )
    found = []
    for run in named.order_by("-window_end", "-created_at")[:MOST]:
        for one in run.blamed:
            if one["component"] in wanted:
                mark = Mark(one["component"], "run", run.analyzer, None, str(run.pk), one["score"])
                found.append(((run.window_end, run.window_end), mark))
    return found
