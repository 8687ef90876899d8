"""Outcomes of changes: recorded by people, and learned from incidents whose test of a change supports it as the cause.

Both are rows of `change_outcome`, so that `config_risk` learns from them. A row of an incident names it; each pair of a
change and an incident has one row at most, and a person who calls the change harmless has the last word on it.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db.models import Q

from analyzers.builtin.config_risk.records import Change
from analyzers.builtin.paths import texts
from analyzers.builtin.stats.intervals import microseconds, moment
from analyzers.contract import Count, Input, Reduction
from incidents import queries
from incidents.changes.risk import AHEAD, stored
from incidents.domain.incident.state import Incident
from incidents.domain.values import CommandRefusedError, InvalidValueError, rfc3339
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.onsets.queries import DEFAULT_REGION, beginning
from incidents.people.permissions import allow
from ingest.commands import record_telemetry
from ingest.queries import Context, ReportedChange, now_utc, read_window

ACTOR: Final = "system:changes"
INCIDENT, ROLLED_BACK, HARMLESS = "incident", "rolled_back", "harmless"
OUTCOMES: Final = (INCIDENT, ROLLED_BACK, HARMLESS)
"""Outcomes that a person may record."""
BEFORE: Final = timedelta(days=1)
"""Time before an incident opened in which a change is tested as its cause."""
OLDEST: Final = timedelta(hours=6)
"""Incidents that opened before are left: their metrics were judged, or never will be."""
EVERY: Final = 30.0
"""Seconds between looks of a process."""
AT_ONCE: Final = 200
"""Incidents in memory: a storm opens thousands within OLDEST."""
_OUTCOMES = Input(
    "change_outcomes",
    (Reduction("outcomes", "change_outcome", ("change", "time", "outcome", "incident"), {"rows": Count()}),),
)
_WORD = r"(?<![\w.-]){}(?![\w-])"

log = structlog.get_logger("changes")
_looked: dict[str, float] = {}


class UnknownChangeNameError(CommandRefusedError):
    """The region has no change of that name."""


def record_outcome(change: str, outcome: str, region: str, context: Context, incident: str = "") -> Change:
    """Store what became of a change; its state afterwards. Recording what holds already changes nothing.

    Raises InvalidValueError, UnknownChangeNameError, ForbiddenError, IncidentNotFoundError.
    """
    allow("record_outcome", context)
    if outcome not in OUTCOMES:
        raise InvalidValueError("outcome", f"must be one of {', '.join(OUTCOMES)}")
    if incident and outcome == HARMLESS:
        raise InvalidValueError("incident", "is of no use with harmless")
    number = str(queries.get(incident).incident.number) if incident else ""
    now = now_utc()
    before = _named(change, region, now)
    if before.at > microseconds(now):
        raise InvalidValueError(
            "change", f"{change[:100]} goes out on {rfc3339(moment(before.at))}: no outcome yet"
        )
    row = {"time": rfc3339(now), "change": change, "outcome": outcome, "incident": number}
    record_telemetry("change_outcome", [row], region, context.actor)
    return _named(change, region, now + timedelta(seconds=1))


def _named(change: str, region: str, now: datetime) -> Change:
    for one in stored(region, now, ahead=AHEAD):
        if one.name == change:
            return one
    raise UnknownChangeNameError(
        f"There is no change {change[:100]!r} in region {region}; nothing was recorded."
    )


def sweep(_: datetime) -> int:
    """Record what tests of changes found; how many outcomes that made."""
    if time.monotonic() - _looked.get(ACTOR, -EVERY) < EVERY:
        return 0
    _looked[ACTOR] = time.monotonic()
    return learn_from_incidents(now_utc())


def learn_from_incidents(now: datetime) -> int:
    """The same at once, at a time. Two processes may call it at once: the rows are the same bytes under one key."""
    recent = IncidentRow.objects.filter(opened_at__gt=now - OLDEST, merged_into=None)
    made = 0
    for region in sorted(
        {name or DEFAULT_REGION for name in recent.values_list("region", flat=True).distinct()}
    ):
        changes = [one for one in stored(region, now) if moment(one.at) > now - OLDEST - BEFORE]
        if not changes:
            continue
        reported = caused(region, now - OLDEST - BEFORE, now)
        here = Q(region=region) if region != DEFAULT_REGION else Q(region=None) | Q(region__in=("", region))
        near = recent.filter(here, opened_at__gte=min(moment(one.at) for one in changes)).order_by("number")
        for row in near.iterator(AT_ONCE):
            it = state_of(row)
            for name in supported(it, changes):
                if str(it.number) not in reported.get(name, ()):
                    made += _learned(name, it, region)
    return made


def _learned(change: str, it: Incident, region: str) -> int:
    row = {"time": rfc3339(it.opened_at), "change": change, "outcome": INCIDENT, "incident": str(it.number)}
    receipt = record_telemetry("change_outcome", [row], region, ACTOR, f"{region}/{it.id}/{change}"[:255])
    log.info("outcome of a change learned", change=change, incident=it.number)
    return 0 if receipt.repeated else 1


def caused(region: str, since: datetime, until: datetime) -> dict[str, tuple[str, ...]]:
    """The incidents (numbers) that rows name as caused by each change."""
    sums = read_window(_OUTCOMES, region, since, until + timedelta(seconds=1))["outcomes"]
    found = defaultdict[str, list[str]](list)
    for change, number in zip(texts(sums, "change"), texts(sums, "incident"), strict=True):
        if number:
            found[change].append(number)
    return {change: tuple(dict.fromkeys(numbers)) for change, numbers in found.items()}


def supported(it: Incident, changes: Iterable[Change]) -> set[str]:
    """The names of those changes that the incident's metrics support as its cause: by the test of a change of that
    name, or of one that was reported and names it."""
    near = {one.name for one in changes if it.opened_at - BEFORE <= moment(one.at) <= it.opened_at}
    if not near:
        return set()
    tests = [one.change for one in beginning(it).changes if one.test.verdict == "supported"]
    return {name for name in near for one in tests if _names(one, name)}


def _names(one: ReportedChange, name: str) -> bool:
    text = "\n".join((one.summary, *one.details.values()))
    return one.id == name or re.search(_WORD.format(re.escape(name)), text) is not None
