"""Last week as the demo tells it: tickets with their own times, and the reports made of them.

The draw is pure; `recall` records it, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np

from incidents import queries
from incidents.commands import Report
from incidents.domain import commands as c
from incidents.domain.values import Severity
from incidents.past import PastTicket, record_past
from incidents.reports.models import ReportSchedule
from incidents.reports.periods import Period, period_at
from incidents.reports.producing import produce_all
from ingest.queries import Context

DAYS = 14
"""Last week and the one before, so that the report of last week can say what changed."""
CONTEXT = Context("user:demo")
_KINDS: tuple[tuple[str, str, Severity, str, float], ...] = (
    # component, what is seen, severity, the team that owns it after all, how often
    ("storage_cluster/d1-s{}", "Disks of storage cluster d1-s{} time out", "error", "storage", 0.35),
    ("tor/d1-c{}-t3", "VMs below tor d1-c{}-t3 lost their network", "critical", "network", 0.25),
    ("host/d2-c{}-t1-h4", "Host d2-c{}-t1-h4 does not answer", "warning", "compute", 0.25),
    ("service/checkout-{}", "Requests of checkout-{} are slow", "error", "services", 0.15),
)


def draw(end: datetime, seed: int) -> Iterator[PastTicket]:
    """Two to five tickets a day for `DAYS` days before `end`; some are passed on before the right team has them."""
    rng = np.random.default_rng([seed, 14])
    shares = [share for *_, share in _KINDS]
    for day in range(DAYS, 0, -1):
        minutes = sorted(rng.uniform(0, 1440 - 400, int(rng.integers(2, 6))).tolist())
        for minute in minutes:
            component, title, severity, team, _ = _KINDS[int(rng.choice(len(_KINDS), p=shares))]
            number = int(rng.integers(1, 6))
            opened = end - timedelta(days=day) + timedelta(minutes=minute)
            yield PastTicket(
                Report(title=title.format(number), component=component.format(number), severity=severity),
                opened,
                tuple(_steps(rng, opened, component.format(number), team)),
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
    yield at, c.Resolve(component if rng.random() < 0.85 else "none", "")


def recall(now: datetime, seed: int) -> list[str]:
    """Record the tickets and produce the reports of the last days and weeks; their ids. Does nothing a second time."""
    if queries.list_incidents(limit=1).items:
        return []
    for ticket in draw(now.replace(hour=0, minute=0, second=0, microsecond=0), seed):
        record_past(ticket, CONTEXT)
    made = []
    for name, back in (("daily", 7), ("weekly", 2)):
        schedule = ReportSchedule.objects.filter(name=name).first()
        if schedule is not None:
            made += produce_all(schedule, _last(period_at(schedule.cadence, now, schedule.zone), back), now)  # type: ignore[arg-type]
    return made


def _last(period: Period, count: int) -> list[Period]:
    """The periods before this one, oldest first."""
    found: list[Period] = []
    for _ in range(count):
        period = period.previous()
        found.append(period)
    return found[::-1]
