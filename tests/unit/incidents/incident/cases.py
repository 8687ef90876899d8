"""Incidents and findings for tests: Alice on call, Bob second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from incidents.domain.incident import commands as c
from incidents.domain.incident.commands import Report
from incidents.domain.incident.decide import decide
from incidents.domain.incident.dissent import NO_DISSENT, Dissent
from incidents.domain.incident.evolve import evolve
from incidents.domain.incident.finding import Finding
from incidents.domain.incident.state import FAILS, Incident, Stance
from incidents.domain.routing.rules import Routing

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
STORAGE = Routing("storage", 6, "routed to Storage because rule 6 matched `storage_cluster/*`")
INCIDENT_ID = "11111111-1111-4111-8111-111111111111"


@dataclass(frozen=True)
class Recorded:
    """An event as an incident is folded from it."""

    type: str
    body: Mapping[str, Any]
    actor: str
    occurred_at: datetime


def after(
    *commands: c.Command, state: Incident | None = None, actor: str = "user:alice", now: datetime = NOON
) -> Incident:
    """The incident after the commands, which must all be allowed."""
    for command in commands:
        for event in decide(state, command, now):
            state = evolve(state, Recorded(event.type, event.body, actor, event.occurred_at))
    assert state is not None
    return state


def types(state: Incident | None, command: c.Command) -> list[str]:
    return [event.type for event in decide(state, command, NOON)]


def opened(**fields: Any) -> c.Open:
    return c.Open(INCIDENT_ID, 1, STORAGE, Report(**{"title": "Disks fail", **fields}))


def blamed(finding: Finding, number: int = 1) -> c.OpenForFinding:
    return c.OpenForFinding(INCIDENT_ID, number, STORAGE, finding, "the analyzer is sure", finding.dedup_key)


def finding(
    component: str = "storage_cluster/s7",
    ambiguous_with: Sequence[str] = (),
    *,
    run: str = "run-1",
    schedule: str | None = "hourly",
    end: datetime = NOON,
    score: float | None = 0.93,
    failure_rate: float | None = 0.021,
    sure: bool = False,
    last_failure: datetime | None = None,
    region: str = "default",
    analyzer: str = "deepview",
    phrase: str = FAILS,
    forecast: bool = False,
) -> Finding:
    return Finding(
        run=run,
        schedule=schedule,
        analyzer=analyzer,
        version="1.0.0",
        params={"method": "binomial"},
        region=region,
        window_start=end - timedelta(hours=1),
        window_end=end,
        component=component,
        ambiguous_with=tuple(sorted(ambiguous_with)),
        score=score,
        failure_rate=failure_rate,
        summary="Disks behind it fail.",
        sure=sure,
        first_failure=None,
        last_failure=last_failure,
        evidence=({"kind": "text", "title": "Why", "text": "It fails."},),
        phrase=phrase,
        forecast=forecast,
    )


def word(
    component: str | None = None,
    *,
    analyzer: str = "voting",
    schedule: str = "voting-5m",
    end: datetime = NOON,
    score: float | None = None,
    dissent: Dissent = NO_DISSENT,
) -> Stance:
    """Stance of a window that blames no incident: nothing, or that something else is at fault."""
    return Stance(
        analyzer=analyzer,
        version="1.0.0",
        run="run-w",
        schedule=schedule,
        window_start=end - timedelta(hours=1),
        window_end=end,
        component=component,
        score=score,
        dissent=dissent,
    )
