"""Theories of an incident: tested against what is stored, recorded with their result, read again.

A theory is tested as of the opening: topology as in force then, onsets of the newest run of `changepoint` over it, the
latest word of each analyzer. The event keeps the result, so that it can be read later as it was.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.db import transaction

from incidents.domain.incident.commands import RecordTheory
from incidents.domain.incident.state import Incident
from incidents.domain.incident.theories import CHECKED
from incidents.domain.theories import Hop, JudgedHop, Known, judge_hop, verdict_of
from incidents.domain.values import check_text, rfc3339
from incidents.incident.models import IncidentRow, TimelineEntry
from incidents.incident.projection import state_of
from incidents.incident.repository import CommandResult, IncidentNotFoundError, record
from incidents.onsets import queries as onsets
from incidents.people.permissions import allow
from incidents.queries import names_about
from incidents.questions.queries import questions_of
from incidents.remediation.queries import DEFAULT_REGION
from ingest.commands import retrying
from ingest.queries import (
    Context,
    TopologySnapshot,
    dependencies_of,
    names_of_changed,
    now_utc,
    topology_snapshot,
    watermark,
)

MOST_STEPS: Final = 6
"""Dependencies between the ends of one hop."""
MOST_SHOWN: Final = 20
LONGEST_NOTE: Final = 2_000


@dataclass(frozen=True, slots=True)
class Tested:
    """A theory with what came of it; `run` is the one that the onsets are of, `measurement` the best that the incident
    asks for about one of its components."""

    hops: tuple[JudgedHop, ...]
    run: str | None
    reaches: bool
    measurement: Mapping[str, Any] | None


def check_theory(incident_id: str, hops: Sequence[Hop], note: object, context: Context) -> CommandResult:
    """Tests a theory and records it with its result. Raises InvalidValueError, ForbiddenError,
    IncidentNotFoundError."""
    allow("comment", context, incident_id)
    text = check_text("note", note, LONGEST_NOTE)
    row = IncidentRow.objects.filter(pk=incident_id).first()
    if row is None:
        raise IncidentNotFoundError(f"no incident {incident_id}")
    position = str(watermark())
    found = tested(state_of(row), hops)
    command = RecordTheory(
        str(uuid.uuid4()),
        verdict_of(found.hops),
        [one.as_json() for one in found.hops],
        text,
        {
            "run": found.run,
            "position": position,
            "topology_at": rfc3339(row.opened_at),
            "reaches_symptom": found.reaches,
            "measurement": found.measurement,
        },
    )
    return retrying(partial(_record, incident_id, command, context))


def tested(it: Incident, hops: Sequence[Hop]) -> Tested:
    """The hops by what is stored. Nothing here writes."""
    began = onsets.beginning(it)
    run, shifts = onsets.metric_shifts(it)
    tests = {one.change.id: one.test for one in began.changes}
    region = it.region or DEFAULT_REGION
    snapshot = topology_snapshot(region, it.opened_at)
    judged = []
    for hop in hops:
        known = Known(
            in_topology=[name for name in (hop.cause, hop.effect) if snapshot.knows(name)],
            way=_way(region, hop.effect, hop.cause, it),
            reverse=_way(region, hop.cause, hop.effect, it) is not None,
            dependents=_dependents(snapshot, hop.cause),
            change=tests.get(hop.change or ""),
        )
        judged.append(judge_hop(hop, known, shifts, list(it.opinions.values())))
    names = {name for hop in hops for name in (hop.cause, hop.effect)}
    reaches = not set(names_about(it)).isdisjoint(names_of_changed([("component", hops[-1].effect)]))
    return Tested(tuple(judged), run, reaches, _measurement(it, names))


def theories_of(incident_id: str) -> list[TimelineEntry]:
    """The recorded theories of an incident, the newest first."""
    found = TimelineEntry.objects.filter(incident__pk=incident_id, type=CHECKED)
    return list(found.order_by("-version")[:MOST_SHOWN])


def _way(region: str, effect: str, cause: str, it: Incident) -> list[str] | None:
    """The shortest chain of dependencies from the effect to the cause as of the opening; None: there is none."""
    known = dependencies_of(region, [effect], it.opened_at, MOST_STEPS)
    before: dict[str, str] = {effect: ""}
    waiting = deque([effect])
    while waiting:
        name = waiting.popleft()
        if name == cause:
            chain = [name]
            while before[chain[-1]]:
                chain.append(before[chain[-1]])
            return chain[::-1]
        rests = known.get(name)
        for up in () if rests is None else (*rests.parents, *rests.depends_on, *rests.path):
            if up not in before:
                before[up] = name
                waiting.append(up)
    return None


def _dependents(snapshot: TopologySnapshot, cause: str) -> set[str]:
    """What rests on a component, directly or through others."""
    found: set[str] = set()
    waiting = [cause]
    while waiting:
        name = waiting.pop()
        for below in (*snapshot.contains.get(name, ()), *snapshot.needed_by.get(name, ())):
            if below not in found:
                found.add(below)
                waiting.append(below)
    return found - {cause}


def _measurement(it: Incident, names: set[str]) -> dict[str, Any] | None:
    """The best measurement that tells a component of the theory from the other suspects."""
    for one in questions_of(it, now_utc()).listed:
        if names & set(one.question.tests):
            return {"question": one.question.id, "text": one.question.text, "bits": round(one.bits, 4)}
    return None


@transaction.atomic
def _record(incident_id: str, command: RecordTheory, context: Context) -> CommandResult:
    return record(incident_id, command, context)
