"""Tests of theories against what is stored, and recorded theories. Nothing here writes.

A theory is tested as of the opening: topology as in force then, onsets of the newest run of `changepoint` over it, the
latest opinion of each analyzer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from incidents.domain.incident.state import Incident
from incidents.domain.incident.theories import CHECKED
from incidents.domain.theories import Hop, JudgedHop, Known, judge_hop
from incidents.incident.models import TimelineEntry
from incidents.onsets import queries as onsets
from incidents.queries import names_about
from incidents.questions.queries import questions_of
from incidents.remediation.queries import DEFAULT_REGION
from ingest.queries import (
    TopologySnapshot,
    dependencies_of,
    names_of_changed,
    now_utc,
    topology_snapshot,
)

MOST_STEPS: Final = 6
"""Dependencies between the ends of one hop."""


MOST_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Tested:
    """A theory with what came of it; `run` is the one that the onsets are of, `measurement` the best that the incident
    asks for about one of its components."""

    hops: tuple[JudgedHop, ...]
    run: str | None
    reaches: bool
    measurement: Mapping[str, Any] | None


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
    """Components that rest on one, directly or through others."""
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
