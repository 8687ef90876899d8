"""Telemetry of a returned part as sources of the sequential test."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from incidents.domain.incident.nodes import NODE_KINDS
from incidents.domain.incident.state import Incident
from incidents.domain.remediation.proof import Counts, Row, Source
from incidents.domain.remediation.state import Remediation
from incidents.remediation.queries import DEFAULT_REGION
from ingest.queries import BenchmarkResult, benchmark_results, other_attempts, part_attempts

HISTORY: Final = timedelta(days=7)
"""Longest history of the fleet, and the part before the hand-over at most."""
LEAST_HISTORY: Final = timedelta(days=1)
KINDS: Final = ("path_outcome", "job_attempt")
LEAST_FLEET: Final = 5
"""Results of others that a criterion of a benchmark needs."""
SPREADS: Final = 3.5
"""Robust standard deviations from the median of the fleet at which a result fails (Iglewicz and Hoaglin, 1993)."""
LEAST_SPREAD: Final = 0.05
"""Share of the median that a result may be off however close the fleet is together."""
TO_DEVIATION: Final = 1.4826


def sources_of(incident: Incident, found: Remediation, now: datetime) -> list[Source]:
    """The sources that have rows of the part or of its node since the return; of a kind that names the part its own
    rows, else those of the node."""
    assert found.returned_at is not None
    region = incident.region or DEFAULT_REGION
    began = min(incident.failing_since or incident.opened_at, incident.opened_at)
    start = max(min(began, found.requested_at - LEAST_HISTORY), found.requested_at - HISTORY)
    made = [
        _attempts(kind, region, names, (start, found.requested_at, found.returned_at, now))
        for kind in KINDS
        for names in _names(found)
    ]
    made += [
        _benchmarks(region, names, (start, found.requested_at, found.returned_at, now))
        for names in _names(found)
    ]
    by_kind: dict[str, Source] = {}
    for one in made:
        if one.after:
            by_kind.setdefault(one.kind, one)
    return [replace(one, began=began) for one in by_kind.values()]


Span = tuple[datetime, datetime, datetime, datetime]
"""Start of the history, hand-over, return, now."""


def _names(found: Remediation) -> list[list[str]]:
    """The part with those that were in its place, and the node, in this order."""
    parts = {found.component, found.part, *(one.replaced for one in found.answers)}
    node = [f"{kind}/{found.node}" for kind in NODE_KINDS]
    part = sorted(one for one in parts if one is not None and one not in node)
    return [part, node] if part else [node]


def _attempts(kind: str, region: str, names: Sequence[str], span: Span) -> Source:
    start, handed, returned, now = span
    after = part_attempts(kind, region, names, returned, now)
    if not after:
        return Source(kind, (), (), Counts())
    history = other_attempts(kind, region, names, start, returned)
    hours = other_attempts(kind, region, names, returned.replace(minute=0, second=0, microsecond=0), now)
    return Source(
        kind,
        before=[Row(*row) for row in part_attempts(kind, region, names, start, handed)],
        after=[Row(*row) for row in after],
        fleet=Counts(sum(row[1] for row in history), sum(row[2] for row in history)),
        hours={at: Counts(attempts, failures) for at, attempts, failures in hours},
    )


Criteria = dict[tuple[str, str, str], tuple[float, float]]
"""By benchmark, metric and model: the lowest and the highest result that passes."""


def _benchmarks(region: str, names: Sequence[str], span: Span) -> Source:
    start, handed, returned, now = span
    results = benchmark_results(region, names, start, now)
    own = _judged([one for one in results if one.own], criteria := _criteria(results))
    if not any(row.at >= returned for row in own):
        return Source("benchmark", (), (), Counts())
    others = _judged([one for one in results if not one.own], criteria)
    return Source(
        "benchmark",
        before=[row for row in own if row.at < handed],
        after=[row for row in own if row.at >= returned],
        fleet=Counts(len(others), sum(row.failures for row in others)),
    )


def _criteria(results: Sequence[BenchmarkResult]) -> Criteria:
    """Median and median absolute deviation of the others, as bounds."""
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for one in results:
        if not one.own:
            values[one.benchmark, one.metric, one.sku].append(one.value)
    made: Criteria = {}
    for key, of_fleet in values.items():
        if len(of_fleet) < LEAST_FLEET:
            continue
        middle = median(of_fleet)
        spread = TO_DEVIATION * median(abs(value - middle) for value in of_fleet)
        width = max(SPREADS * spread, LEAST_SPREAD * abs(middle))
        made[key] = (middle - width, middle + width)
    return made


def _judged(results: Sequence[BenchmarkResult], criteria: Criteria) -> list[Row]:
    """One attempt for each run of a benchmark on a node: it fails where any of its metrics does."""
    runs: dict[tuple[datetime, str, str], bool] = {}
    for one in results:
        if (bounds := criteria.get((one.benchmark, one.metric, one.sku))) is None:
            continue
        key = (one.at, one.node, one.benchmark)
        runs[key] = runs.get(key, False) or not bounds[0] <= one.value <= bounds[1]
    return [Row(at, 1, int(failed)) for (at, _, _), failed in sorted(runs.items())]
