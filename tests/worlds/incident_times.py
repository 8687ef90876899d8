"""Histories of incidents with how long each lasted: what kind, whose, when, and a time that follows from it or not.

Times are made of stages (noticing, diagnosis, repair), each with its own law, so that no case is one log-normal. Cases:
`kinds` (repair depends on the kind of component), `teams` (diagnosis depends on the team), `night` (at night people
come late), `faster` (halfway one team halves its times), `heavy` (repair has a Pareto tail), `flaps` (a third resolve
themselves within minutes), `alike` (nothing that is known at the opening matters).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

CASES = ("kinds", "teams", "night", "faster", "heavy", "flaps", "alike")
KINDS = {
    "disk": (180, "I/O errors on {}"),
    "tor": (40, "Packet loss behind {}"),
    "gpu": (90, "XID errors on {}"),
    "service": (25, "Error rate of {} above 2 %"),
    "pdu": (300, "{} over current"),
}
TEAMS = {"storage": 2.5, "network": 0.6, "compute": 1.0}
START = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Past:
    title: str
    component: str
    team: str
    severity: str
    opened_at: datetime
    seconds: float


def make(seed: int, case: str, count: int = 500) -> list[Past]:
    """Incidents in the order of their opening, about eight a day."""
    draw = random.Random(f"{seed} {case}")
    at, found = START, []
    for n in range(count):
        at += timedelta(hours=draw.expovariate(1 / 3))
        kind, team = draw.choice(sorted(KINDS)), draw.choice(sorted(TEAMS))
        name = f"{kind}/{draw.choice('abc')}{draw.randint(1, 60)}"
        minutes = _minutes(draw, case, kind, team, at, n / count)
        severity = draw.choice(("critical", "warning", "warning"))
        found.append(Past(KINDS[kind][1].format(name), name, team, severity, at, 60 * minutes))
    return found


def _minutes(draw: random.Random, case: str, kind: str, team: str, at: datetime, done: float) -> float:
    noticing = draw.expovariate(1 / 4)
    diagnosis = draw.weibullvariate(20, 1.4)
    repair = draw.gammavariate(2, 15)
    if case in ("kinds", "heavy", "flaps"):
        repair = draw.gammavariate(3, KINDS[kind][0] / 3)
    if case in ("teams", "faster"):
        diagnosis *= 3 * TEAMS[team]
    if case == "faster" and team == "storage" and done > 0.5:
        diagnosis, repair = diagnosis / 5, repair / 2
    if case == "night" and not 7 <= at.hour < 19:
        noticing += draw.gammavariate(4, 20)
    if case == "heavy":
        repair *= draw.paretovariate(1.5)
    if case == "flaps" and draw.random() < 1 / 3:
        return draw.uniform(0.5, 5)
    return noticing + diagnosis + repair
