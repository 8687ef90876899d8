"""Health of one component by telemetry: its failure rate over the last day, and its uptime in a month."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from analyzers.queries import runs
from incidents.domain.components.availability import Part, up_between, up_by_part
from ingest.queries import (
    Outage,
    PathSource,
    PathSteps,
    PathSumsTooSlow,
    outages_of,
    path_clock,
    path_rates,
    path_source,
)

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOURS, DAYS = 24, 28


@dataclass(frozen=True, slots=True)
class Hour:
    """Attempts and losses of the component's paths in an hour; `share` is None where they carried nothing."""

    start: datetime
    end: datetime
    carried: int
    failed: int
    share: float | None


@dataclass(frozen=True, slots=True)
class Rates:
    """`now` is the last hour; `elsewhere` is the share that failed in it on the paths of all components."""

    source: PathSource
    hours: list[Hour]
    elsewhere: float | None

    @property
    def now(self) -> Hour:
        return self.hours[-1]

    @property
    def most(self) -> float:
        return max((one.share or 0.0 for one in self.hours), default=0.0)


@dataclass(frozen=True, slots=True)
class Availability:
    """Of the last DAYS days: the share of them in which no outage was reported, day by day and in all."""

    days: list[Part]
    up: float
    unplanned: float
    outages: list[Outage]


@dataclass(frozen=True, slots=True)
class NamedBy:
    """The latest run of an analyzer that named the component within the last DAYS days."""

    run: str
    analyzer: str
    at: datetime
    score: float | None


@dataclass(frozen=True, slots=True)
class Health:
    """`slow` says why there are no rates though there is telemetry."""

    rates: Rates | None
    slow: str
    availability: Availability | None
    named: list[NamedBy]


def health_of(region: str, component: str, at: datetime | None) -> Health:
    """As of a time, or as of the newest telemetry."""
    try:
        rates, slow = _rates(region, component, at), ""
    except PathSumsTooSlow as error:
        rates, slow = None, str(error)
    now = at or datetime.now(UTC)
    return Health(rates, slow, _availability(region, component, now), _named_by(component, now))


def _named_by(component: str, now: datetime) -> list[NamedBy]:
    """Of each analyzer the latest, by analyzer."""
    named = runs().filter(
        repeats=None,
        blamed__contains=[{"component": component}],
        window_end__gt=now - DAYS * DAY,
        window_end__lte=now,
    )
    found: dict[str, NamedBy] = {}
    for run in named.order_by("-window_end")[:200]:
        score = next(one["score"] for one in run.blamed if one["component"] == component)
        found.setdefault(run.analyzer, NamedBy(str(run.pk), run.analyzer, run.window_end, score))
    return [found[name] for name in sorted(found)]


def _rates(region: str, component: str, at: datetime | None) -> Rates | None:
    source = path_source(region)
    end = at or (path_clock(region, source) if source else None)
    if source is None or end is None:
        return None
    end = end.replace(second=0, microsecond=0) + timedelta(minutes=1)
    carried, failed, all_carried, all_failed = path_rates(
        region, source, PathSteps(end - HOURS * HOUR, HOUR, HOURS), component
    )
    if not carried.any():
        return None
    hours = [
        Hour(end - (HOURS - n) * HOUR, end - (HOURS - n - 1) * HOUR, lost_of[0], lost_of[1], _share(*lost_of))
        for n, lost_of in enumerate(zip(carried.tolist(), failed.tolist(), strict=True))
    ]
    return Rates(source, hours, _share(int(all_carried[-1]), int(all_failed[-1])))


def _share(carried: int, failed: int) -> float | None:
    return failed / carried if carried else None


def _availability(region: str, component: str, at: datetime) -> Availability | None:
    end = at.replace(microsecond=0)
    start = end - DAYS * DAY
    outages = outages_of(region, component, start, end)
    if not outages:
        return None
    spans = [(one.start, one.end or end) for one in outages]
    unplanned = [(one.start, one.end or end) for one in outages if not one.planned]
    days = up_by_part(spans, start, end, DAY)
    return Availability(days, up_between(spans, start, end), up_between(unplanned, start, end), outages)
