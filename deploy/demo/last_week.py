"""Last week of the demo world: incidents with their own times, verdicts about them, and the
reports on both.

The draw is pure; `recall` records it, once. The telemetry of those days is drawn too and really judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

import numpy as np

from analyzers.commands import record_past_run
from incidents import queries
from incidents.commands import Report
from incidents.domain.incident import commands as c
from incidents.domain.incident.finding import finding_from
from incidents.domain.values import Severity, rfc3339
from incidents.incident.backfill import PastIncident, record_past
from incidents.reports.models import ReportSchedule
from incidents.reports.periods import Period, period_at
from incidents.reports.produce import produce_all
from ingest.queries import Context

WEEKS = 2
"""Last week and the one before, both whole, so that the report of last week can say what changed."""
CONTEXT = Context("user:demo")
ANALYZER, REGION, WINDOW = "deepview", "default", timedelta(minutes=10)
ATTEMPTS, NOISE = 400, 0.0005
_KINDS: tuple[tuple[str, str, Severity, str, float], ...] = (
    # component, what is seen, severity, the team that owns it after all, how often
    ("storage_cluster/d1-s{}", "Disks of storage cluster d1-s{} time out", "error", "storage", 0.35),
    ("switch/d1-c{}-a1", "VMs behind switch d1-c{}-a1 lost their network", "critical", "network", 0.25),
    ("host/d2-c{}-t1-h4", "Host d2-c{}-t1-h4 does not answer", "warning", "compute", 0.25),
    ("service/checkout-{}", "Requests of checkout-{} are slow", "error", "services", 0.15),
)
_WATCHED = ("storage_cluster", "switch")
"""Of these there was telemetry."""
_SWITCHES = tuple(f"switch/d1-c{n}-a1" for n in range(1, 9))
_STORAGE = tuple(f"storage_cluster/d1-s{n}" for n in range(1, 7))

Reporter = Literal["people first", "analyzer first", "analyzer alone"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A past incident, and its source if the analyzer found it in `rows`, the rows of the window that ends
    at `judged_at`."""

    incident: PastIncident
    component: str
    reporter: Reporter = "people first"
    rows: tuple[dict[str, Any], ...] = ()

    @property
    def second_at(self) -> datetime:
        """Time of a second report by another person: before anybody looked."""
        opened, looked = self.incident.opened_at, self.incident.steps[0][0]
        return opened + (looked - opened) / 2

    @property
    def judged_at(self) -> datetime:
        return self.second_at if self.reporter == "people first" else self.incident.opened_at


def draw(end: datetime, seed: int) -> Iterator[Trouble]:
    """Two to five incidents a day of the last weeks before `end`; some are passed on before the right team has them."""
    rng = np.random.default_rng([seed, 14])
    shares = [share for *_, share in _KINDS]
    for day in range(7 * WEEKS + end.weekday(), 0, -1):
        minutes = sorted(rng.uniform(0, 1440 - 400, int(rng.integers(2, 6))).tolist())
        for minute in minutes:
            component, title, severity, team, _ = _KINDS[int(rng.choice(len(_KINDS), p=shares))]
            number = int(rng.integers(1, 6))
            opened = end - timedelta(days=day) + timedelta(minutes=minute)
            named = component.format(number)
            incident = PastIncident(
                Report(title=title.format(number), component=named, severity=severity),
                opened,
                tuple(_steps(rng, opened, named, team)),
            )
            yield (
                _watched(rng, Trouble(incident, named))
                if named.startswith(_WATCHED)
                else Trouble(incident, named)
            )


def _steps(
    rng: np.random.Generator, opened: datetime, component: str, team: str
) -> Iterator[tuple[datetime, c.Command]]:
    at = opened + timedelta(minutes=float(rng.lognormal(1.6, 0.7)))
    yield at, c.Acknowledge()
    if rng.random() < 0.25:  # to a team that looks and finds nothing, and back
        other = "compute" if team != "compute" else "network"
        for receiver, reason in ((other, "looks like theirs"), (team, "their side is healthy")):
            at += timedelta(minutes=float(rng.lognormal(3.4, 0.6)))
            yield at, c.HandOver(receiver, reason)
    at += timedelta(minutes=float(rng.lognormal(3.6, 0.7)))
    yield at, c.Resolve(component if rng.random() < 0.9 else "none", "")


def _watched(rng: np.random.Generator, trouble: Trouble) -> Trouble:
    """With the telemetry of it: a share of failures that shows, now and then one too small for that."""
    entries: tuple[Reporter, ...] = ("people first", "analyzer first", "analyzer alone")
    trouble = replace(trouble, reporter=entries[int(rng.choice(3, p=[0.35, 0.35, 0.3]))])
    rate = 10 ** rng.uniform(-2.5, -1)
    time = rfc3339(trouble.judged_at - WINDOW / 2)
    rows = []
    for pair in ((switch, storage) for switch in _SWITCHES for storage in _STORAGE):
        failing = NOISE + rate * (trouble.component in pair)
        failures = int(rng.binomial(ATTEMPTS, failing))
        rows.append({"time": time, "components": list(pair), "attempts": ATTEMPTS, "failures": failures})
    return replace(trouble, rows=tuple(rows))


def recall(now: datetime, seed: int) -> list[str]:
    """Record the incidents and produce the reports of the last days and weeks; their ids. Does nothing a
    second time.
    """
    # Telemetry of the month before may have opened incidents; only those of last week are resolved.
    if queries.counts(most=1)["resolved"]:
        return []
    for trouble in draw(now.replace(hour=0, minute=0, second=0, microsecond=0), seed):
        record_past(judged(trouble) if trouble.rows else trouble.incident, CONTEXT)
    made = []
    for name, back in (("daily", 7), ("weekly", WEEKS)):
        schedule = ReportSchedule.objects.filter(name=name).first()
        if schedule is not None:
            made += produce_all(schedule, _last(period_at(schedule.cadence, now, schedule.zone), back), now)  # type: ignore[arg-type]
    return made


def judged(trouble: Trouble) -> PastIncident:
    """The incident with what the analyzer made of the telemetry."""
    incident, end = trouble.incident, trouble.judged_at
    start = end - WINDOW
    run = record_past_run(ANALYZER, "path_outcome", trouble.rows, start, end, REGION, CONTEXT.actor)
    findings = (finding_from(body) for body in run.findings)
    finding = next((one for one in findings if trouble.component in one.cause), None)
    ended, last = incident.steps[-1]
    if finding is None:
        missed = c.RecordMissedCause(
            trouble.component, ANALYZER, run.version, 1, rfc3339(start), rfc3339(end), run.id
        )
        confirmed = isinstance(last, c.Resolve) and last.confirmed_cause == trouble.component
        return replace(incident, steps=(*incident.steps, (ended, missed))) if confirmed else incident
    if trouble.reporter == "analyzer alone":
        return replace(incident, opened_by=finding)
    assert isinstance(incident.opened_by, Report)
    if trouble.reporter == "analyzer first":
        second: c.Command = c.Join(incident.opened_by)
        incident = replace(incident, opened_by=finding)
    else:
        second = c.JoinFinding(finding)
    return replace(incident, steps=((trouble.second_at, second), *incident.steps))


def _last(period: Period, count: int) -> list[Period]:
    """The periods before this one, oldest first."""
    found: list[Period] = []
    for _ in range(count):
        period = period.previous()
        found.append(period)
    return found[::-1]
