"""Alerts that are symptoms of an incident's cause: they join it, and leave again when the cause is withdrawn. Pure.

An alert that is moved out of an incident leaves it by one event and joins the other by another, each of which
says why. A incident that people work on is left as it is: it is only told what explains it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from incidents.domain.incident.explanations import Explanation
from incidents.domain.incident.finding_placement import is_worse
from incidents.domain.incident.grouping import Member, worst
from incidents.domain.incident.refusals import Bodies, raise_severity, refuse_resolved
from incidents.domain.incident.state import Fact, Incident


@dataclass(frozen=True, slots=True)
class Ticket:
    """An incident as another one's events name it."""

    id: str
    number: int
    title: str

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "number": self.number, "title": self.title}


@dataclass(frozen=True, slots=True)
class Symptom:
    """An alert that fires, and how the incident's cause explains it."""

    member: Member
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class JoinSymptoms:
    """Alerts that the cause of this open incident explains; `source` is the incident that they were in, if any."""

    symptoms: tuple[Symptom, ...]
    source: Ticket | None = None


@dataclass(frozen=True, slots=True)
class RemoveAlerts:
    """Members that belong here no more, of which `firing` still fire; `target` is where they go, if that is known."""

    alerts: tuple[str, ...]
    firing: int
    why: str
    target: Ticket | None = None


@dataclass(frozen=True, slots=True)
class LinkToCause:
    """Another incident's cause explains `alerts` of this one, which stays as it is because of `kept`."""

    by: Ticket
    explanation: Explanation
    alerts: int
    kept: str


def join_symptoms(state: Incident, command: JoinSymptoms) -> Bodies:
    refuse_resolved(state)
    members = [one.member for one in command.symptoms]
    hows = list(dict.fromkeys(one.explanation for one in command.symptoms))
    place = {how: number for number, how in enumerate(hows)}
    body = {
        "alerts": [member.alert for member in members],
        "new": sum(not member.again for member in members),
        "title": members[-1].title,
        "hows": [
            {"component": how.component, "cause": how.cause, "hops": how.hops, "how": how.how} for how in hows
        ],
        "how_of": [place[one.explanation] for one in command.symptoms],
        "source": None if command.source is None else command.source.as_json(),
    }
    events: Bodies = [("incident.symptoms_joined", body)]
    severity = worst(member.severity for member in members)
    if is_worse(severity, state.severity) and not state.severity_by_person:
        events.append(raise_severity(severity, state, "a joined symptom has a higher severity"))
    return events


def leave_alerts(_: Incident, command: RemoveAlerts) -> Bodies:
    body = {
        "alerts": list(command.alerts),
        "firing": command.firing,
        "target": None if command.target is None else command.target.as_json(),
        "why": command.why,
    }
    return [("incident.alerts_removed", body)]


def note_explained(state: Incident, command: LinkToCause) -> Bodies:
    refuse_resolved(state)
    how = command.explanation
    body = {
        "by": command.by.as_json(),
        "component": how.component,
        "cause": how.cause,
        "how": how.how,
        "alerts": command.alerts,
        "kept": command.kept,
    }
    return [("incident.linked_to_cause", body)]


# Folding
# ----------------------------------------------------------------------------------------------------------
def symptoms_joined(state: Incident, event: Fact) -> Incident:
    return replace(
        state,
        alerts=state.alerts + event.body["new"],
        firing=state.firing + len(event.body["alerts"]),
        flapping=False,
        alert_at=event.occurred_at,
        reported_at=state.reported_at or event.occurred_at,
    )


def alerts_left(state: Incident, event: Fact) -> Incident:
    return replace(
        state,
        alerts=max(0, state.alerts - len(event.body["alerts"])),
        firing=max(0, state.firing - event.body["firing"]),
    )


def explained(state: Incident, _: Fact) -> Incident:
    return state


# Sentences
# ----------------------------------------------------------------------------------------------------------
def _count(number: int) -> str:
    return "an alert" if number == 1 else f"{number} alerts"


def symptoms_joined_sentence(body: Mapping[str, Any]) -> str:
    how, others = body["hows"][-1]["how"], len(body["hows"]) - 1
    more = "" if not others else f", likewise for {others} more component{'' if others == 1 else 's'}"
    source = "" if body["source"] is None else f"; from #{body['source']['number']}"
    joined = "joined as a symptom" if len(body["alerts"]) == 1 else "joined as symptoms, last"
    return f"{_count(len(body['alerts']))} {joined}: {body['title']}; {how}{more}{source}"


def alerts_removed_sentence(body: Mapping[str, Any]) -> str:
    target = "" if body["target"] is None else f" for #{body['target']['number']}"
    return f"{_count(len(body['alerts']))} left this incident{target}: {body['why']}"


def linked_to_cause_sentence(body: Mapping[str, Any]) -> str:
    by = body["by"]
    explains = f"#{by['number']} “{by['title']}” explains {_count(body['alerts'])}: {body['how']}"
    return f"{explains}; kept as a separate incident: {body['kept']}"


def whys_of(bodies: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """By alert, from bodies of `incident.symptoms_joined`: why it joined."""
    return {
        alert: str(body["hows"][place]["how"])
        for body in bodies
        for alert, place in zip(body["alerts"], body["how_of"], strict=True)
    }
