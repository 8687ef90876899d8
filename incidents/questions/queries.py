"""Questions that would tell the suspects of an incident apart, from what is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import OperationalError

from analyzers.queries import runs, verdict
from incidents.domain.incident.nodes import is_of_a_node
from incidents.domain.incident.questions import ANSWERED, beliefs, groups_of
from incidents.domain.incident.state import Incident, Opinion
from incidents.domain.questions import (
    NONE,
    SETTLED,
    Beliefs,
    Dialogue,
    Group,
    Path,
    Question,
    Ranked,
    RequestedProbe,
    candidates,
    entropy,
    is_settled,
    leading,
    priced,
    ranked,
)
from incidents.incident.models import TimelineEntry
from incidents.remediation.queries import DEFAULT_REGION, node_of
from ingest.queries import ProbedPath, probed_paths

MOST_SHOWN: Final = 10
CERTAIN: Final = 0.9
"""Suspects of one verdict from this score on are faults of their own, not alternatives."""
PATHS_FROM: Final = timedelta(hours=6)
"""Time before the failure in which paths of probes are looked for."""
LATENESS: Final = ("latency", "late")
"""Parts of indicators of faults that delay packets."""


@dataclass(frozen=True, slots=True)
class Move:
    """An answer as it was recorded, with the beliefs before and after."""

    at: datetime
    actor: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Questions:
    """`beliefs` are those after all answers; `reason` says why nothing is listed."""

    beliefs: Beliefs
    listed: Sequence[Ranked]
    pending: Sequence[RequestedProbe]
    moves: Sequence[Move]
    reason: str = ""

    @property
    def bits(self) -> float:
        """Entropy of the beliefs."""
        return entropy(self.beliefs)

    def as_json(self) -> dict[str, Any]:
        return {
            "suspects": [
                {"component": name, "probability": round(p, 4)} for name, p in by_probability(self.beliefs)
            ],
            "bits": round(self.bits, 4),
            "reason": self.reason or None,
            "questions": [_ranked_json(one) for one in self.listed],
            "requested": [one.as_json() for one in self.pending],
            "answers": [{**one.body, "recorded_at": one.at, "actor": one.actor} for one in self.moves],
        }


def _ranked_json(one: Ranked) -> dict[str, Any]:
    question = one.question
    return {
        **question.as_json(),
        "text": question.text,
        "positive": question.positive,
        "judged_by_rows": question.is_judged_by_rows,
        "bits": round(one.bits, 4),
        "bits_per_minute": round(one.rate, 5),
    }


def by_probability(found: Beliefs) -> list[tuple[str, float]]:
    return sorted(found.items(), key=lambda one: (-one[1], one[0] == NONE, one[0]))


def questions_of(state: Incident, now: datetime) -> Questions:
    """The questions of an incident, the best first, with what is asked and what was answered."""
    known = state.questions or Dialogue()
    found = beliefs(state, others(state))
    moves = [
        Move(one.last_at, one.actor, one.body)
        for one in TimelineEntry.objects.filter(incident__pk=state.id, type=ANSWERED).order_by("version")
    ]
    pending = known.pending(now)
    if reason := _nothing_to_ask(state, found):
        return Questions(found, (), pending, moves, reason)
    open_ones = [one for one in measurements(state, found, now) if not known.is_answered(one.id)]
    listed = ranked(found, open_ones)[:MOST_SHOWN]
    return Questions(
        found, listed, pending, moves, "" if listed else "No measurement tells the suspects apart."
    )


def _nothing_to_ask(state: Incident, found: Beliefs) -> str:
    if state.state == "resolved":
        return "The incident is resolved."
    name, p = leading(found)
    if len(found) < 2:
        return "No analyzer names a suspect."
    if len(found) == 2:
        return f"{name} is the only suspect."
    if is_settled(found):
        return (
            f"{name} leads with {p:.0%}; at {SETTLED:.0%} or more no measurement is proposed."
            if p >= SETTLED
            else ("Most likely none of the suspects is at fault.")
        )
    return ""


def find(state: Incident, id: str, now: datetime) -> Question | None:
    """The question of an id: one that is asked or was answered, one of the present suspects, or one of the suspects of
    any analyzer and answer before."""
    known = state.questions or Dialogue()
    recorded = [*(one.question for one in known.requested), *(one.question for one in known.answers)]
    for question in recorded:
        if question.id == id:
            return question
    ever = {name for opinion in state.opinions.values() for name in opinion.cause}
    names = {*beliefs(state, others(state)), *ever, *known.ruled_out, *state.cause}
    return next((one for one in measurements(state, names, now) if one.id == id), None)


def measurements(state: Incident, names: Any, now: datetime) -> list[Question]:
    """The measurements that test one of the names."""
    suspects = [name for name in names if name != NONE]
    nodes = {
        name: f"node/{node}"
        for name in suspects
        if is_of_a_node(name) and (node := node_of(name, state.region, now)) is not None
    }
    paths, costs = _paths(state, suspects, now), priced(settings.QUESTION_COSTS)
    return candidates(suspects, paths, nodes, _rate(state), costs)


def _paths(state: Incident, suspects: Sequence[str], now: datetime) -> list[Path]:
    began = min(one for one in (state.failing_since, state.opened_at) if one is not None)
    try:
        found: Sequence[ProbedPath] = probed_paths(
            state.region or DEFAULT_REGION, suspects, began - PATHS_FROM, now
        )
    except OperationalError:  # too many probes to look through in time: the other measurements stay
        found = ()
    return [Path(one.src, one.dst, one.hops) for one in found]


def _rate(state: Incident) -> float | None:
    """Share of packets that the fault loses, as its analyzer estimates it; None without an estimate, 0 if it delays."""
    lead = _lead(state)
    if lead is None:
        return None
    if any(word in lead.indicator for word in LATENESS):
        return 0.0
    return lead.failure_rate or None


def _lead(state: Incident) -> Opinion | None:
    """The opinion that names the incident's component, the newest of several."""
    blaming = [
        one for one in state.opinions.values() if one.stance == "blames" and state.component in one.cause
    ]
    return max(blaming, key=lambda one: (one.window_end, one.analyzer), default=None)


def others(state: Incident) -> tuple[Group, ...]:
    """Suspects of the same verdict that the incident does not name and that are as uncertain as its own."""
    lead = _lead(state)
    if lead is None or lead.score is None or lead.score >= CERTAIN:
        return ()
    run = runs().filter(pk=lead.run).first()
    body = None if run is None else verdict(run)
    known = {name for group in groups_of(state) for name in group.components}
    made = []
    for suspect in () if body is None else body["suspects"]:
        names = (suspect["component"], *suspect["ambiguous_with"])
        score = suspect["score"]
        if score is not None and score < CERTAIN and not known.intersection(names):
            made.append(Group(tuple(sorted(names)), score))
    return tuple(made)
