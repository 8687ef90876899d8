"""Incidents of a report: opened and resolved ones, and times of response.

An incident counts in the period in which it was opened or resolved; all is told as it stood at the report's
place in the log. Times are those at which things happened.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from incidents.domain.incident.evolve import fold
from incidents.domain.incident.state import Incident
from incidents.domain.values import SEVERITIES, optional_rfc3339, rfc3339
from incidents.incident.models import IncidentRow
from incidents.incident.repository import stream_of
from incidents.onsets.queries import onset_of
from ingest.queries import Position, read_streams

Json = dict[str, Any]
AT_ONCE = 500
"""Incidents whose events are read with one query."""
MOST_DATED = 100
"""Incidents of which a report says since when they last: a storm has thousands."""


@dataclass(frozen=True, slots=True)
class ReportedIncident:
    """An incident as it stood, when somebody first acknowledged it, and when it came to the team that has it."""

    state: Incident
    acknowledged_at: datetime | None
    placed_at: datetime

    @property
    def link(self) -> str:
        return f"{settings.PUBLIC_URL}/incidents/{self.state.number}"


def incidents_of(
    region: str, team: str, start: datetime, end: datetime, upto: Position
) -> list[ReportedIncident]:
    """The incidents that were there in `[start, end)`, by number, of a region and a team ("" is any)."""
    rows = IncidentRow.objects.filter(opened_at__lt=end).exclude(resolved_at__lt=start)
    ids = [str(pk) for pk in rows.order_by("number").values_list("pk", flat=True)]
    found = (one for some in _batched(ids) for one in _as_of(some, upto))
    return [
        one
        for one in found
        if one.state.opened_at < end
        and (not team or one.state.team == team)
        and (not region or one.state.region in (None, region))
    ]


def _as_of(ids: Sequence[str], upto: Position) -> Iterator[ReportedIncident]:
    """Those of them that were open by then."""
    histories = read_streams([stream_of(id_) for id_ in ids], upto)
    for events in (histories.get(stream_of(id_), []) for id_ in ids):
        state = fold(events)
        if state is None:
            continue
        # A hand-over takes the acknowledgement back; how quickly somebody looked stays true.
        taken = [event.occurred_at for event in events if event.type == "incident.acknowledged"]
        yield ReportedIncident(state, taken[0] if taken else None, state.team_since)


def _batched(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE))


def listed(
    incidents: Iterable[ReportedIncident], start: datetime, end: datetime, upto: Position | None = None
) -> Json:
    """The incidents opened and resolved in `[start, end)`; with `upto`, at most MOST_DATED of those opened say since
    when they last, from what was known then."""
    every = list(incidents)
    opened = [one for one in every if start <= one.state.opened_at < end]
    dated = 0 if upto is None else MOST_DATED
    return {
        "opened": [
            {**_line(one), "since": _since(one.state, upto) if place < dated else None}
            for place, one in enumerate(opened)
        ],
        "resolved": [_line(one) for one in every if _resolved_in(one, start, end)],
    }


def _since(state: Incident, upto: Position | None) -> Json:
    found = onset_of(state, upto)
    return {
        "at": rfc3339(found.at),
        "low": optional_rfc3339(found.low),
        "high": rfc3339(found.high),
        "source": found.source,
        "detail": found.detail,
        "interval": found.interval,
        "forecast": found.forecast,
    }


def _line(one: ReportedIncident) -> Json:
    state = one.state
    open_for = None if state.resolved_at is None else state.resolved_at - state.opened_at
    return {
        "id": state.id,
        "number": state.number,
        "title": state.title,
        "severity": state.severity,
        "component": state.component,
        "team": state.team,
        "opened_at": rfc3339(state.opened_at),
        "resolved_at": optional_rfc3339(state.resolved_at),
        "confirmed_cause": state.confirmed_cause,
        "minutes_open": None if open_for is None else round(open_for.total_seconds() / 60, 1),
        "hops": state.hops,
        "url": one.link,
    }


def _resolved_in(one: ReportedIncident, start: datetime, end: datetime) -> bool:
    """One that was merged into another is not counted: its target is."""
    if one.state.merged_into is not None:
        return False
    return one.state.resolved_at is not None and start <= one.state.resolved_at < end


def response(incidents: Sequence[ReportedIncident], start: datetime, end: datetime) -> Json:
    """Times to acknowledge, place and resolve incidents, and the number of hand-overs.

    `acknowledged` is measured over the incidents opened in the period, the rest over those resolved in it.
    """
    opened = [one for one in incidents if start <= one.state.opened_at < end]
    resolved = [one for one in incidents if _resolved_in(one, start, end)]
    still = [one for one in incidents if one.state.resolved_at is None or one.state.resolved_at >= end]
    return {
        "opened": len(opened),
        "resolved": len(resolved),
        "open_at_end": len(still),
        "by_severity": {name: _count(opened, name) for name in SEVERITIES},
        "acknowledged": spread(
            one.acknowledged_at - one.state.opened_at for one in opened if one.acknowledged_at is not None
        ),
        "right_team": spread(one.placed_at - one.state.opened_at for one in resolved),
        "resolution": spread(
            one.state.resolved_at - one.state.opened_at
            for one in resolved
            if one.state.resolved_at is not None
        ),
        "hops": {
            "total": sum(one.state.hops for one in resolved),
            "most": max((one.state.hops for one in resolved), default=0),
            "passed_on_twice": sum(one.state.hops >= 2 for one in resolved),
        },
        "causes": [
            {"cause": cause, "incidents": count}
            for cause, count in sorted(
                Counter(one.state.confirmed_cause or "not said" for one in resolved).items(),
                key=lambda item: (-item[1], item[0]),
            )[:20]
        ],
    }


def _count(incidents: Iterable[ReportedIncident], severity: str) -> int:
    return sum(one.state.severity == severity for one in incidents)


def spread(spans: Iterable[timedelta]) -> Json:
    """Number, median and 90th percentile (nearest rank) in seconds; None where there is nothing to measure."""
    seconds = sorted(span.total_seconds() for span in spans)
    count = len(seconds)
    if not count:
        return {"n": 0, "median": None, "p90": None}
    middle = (seconds[(count - 1) // 2] + seconds[count // 2]) / 2
    return {"n": count, "median": round(middle, 1), "p90": round(seconds[math.ceil(0.9 * count) - 1], 1)}
