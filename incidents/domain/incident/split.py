"""Alerts that a person takes out of an incident, because they are about something else: they open one of
their own. Pure.

The incident that they leave says so by one event, the new one is opened and told by another; both name each other. The
new incident stays with the team that has the old one, and with whoever works on that: nobody is called anew for what
somebody has already. Merged into the old one, it is as if it had never been split off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from incidents.domain.incident.alerts import IncidentReference, Member, worst
from incidents.domain.incident.state import Bodies, Fact, Incident, opening, refuse_resolved, replace
from incidents.domain.routing.rules import Routing
from incidents.domain.values import TITLE_LIMIT, CommandRefusedError, check_line, check_text

MOST = 1_000
"""Alerts that one command moves: a body stays some hundred kilobytes."""


@dataclass(frozen=True, slots=True)
class OpenSplitOff:
    """Opens an incident with members of `source`, of which `resolved` fire no more. `title` is empty for the first
    alert's; `component` and `labels` are what the alerts have in common."""

    id: str
    number: int
    source: Incident
    members: tuple[Member, ...]
    resolved: tuple[str, ...] = ()
    component: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if self.title != "":
            object.__setattr__(self, "title", check_line("title", self.title, TITLE_LIMIT))
        object.__setattr__(self, "reason", check_text("reason", self.reason, 2000))


@dataclass(frozen=True, slots=True)
class SplitAlertsOff:
    """Members that leave for `target`; `firing` of them fire."""

    alerts: tuple[str, ...]
    firing: int
    target: IncidentReference
    reason: str = ""


def open_split_off(command: OpenSplitOff) -> Bodies:
    """The incident that they leave was asked first: here nothing is refused."""
    source, first = command.source, command.members[0]
    stays = f"stays with {source.team}, split off from #{source.number}"
    # A policy that a route named is for the team that it routed to.
    policy = source.policy if source.hops == 0 else None
    routing = Routing(source.team, None, stays, service=source.service, policy=policy)
    opened = {
        **opening(command.id, command.number, routing),
        "title": command.title or first.title,
        "description": "",
        "severity": worst(member.severity for member in command.members),
        "component": command.component,
        "ambiguous_with": [],
        "region": source.region,
        "dedup_key": f"incident:{command.id}",
        "labels": dict(command.labels),
        "links": [],
        "alerts": 0,
        "verdict": None,
        "finding": None,
        "why": f"split off #{source.number}",
    }
    body = {
        "source": IncidentReference(source.id, source.number, source.title).as_json(),
        "alerts": [member.alert for member in command.members],
        "resolved": list(command.resolved),
        "title": command.members[-1].title,
        "reason": command.reason,
    }
    events: Bodies = [("incident.opened", opened), ("incident.split_from", body)]
    return [*events, ("incident.acknowledged", {})] if source.state == "acknowledged" else events


def split_alerts_off(state: Incident, command: SplitAlertsOff) -> Bodies:
    refuse_resolved(state)
    if len(command.alerts) >= state.alerts and not state.findings:
        raise CommandRefusedError(
            f"these are all that #{state.number} is about, so nothing would be left; change its title,"
            " or hand it over"
        )
    body = {
        "target": command.target.as_json(),
        "alerts": list(command.alerts),
        "firing": command.firing,
        "reason": command.reason,
    }
    return [("incident.alerts_moved", body)]


# Folding
# ----------------------------------------------------------------------------------------------------------
def split_off(state: Incident, event: Fact) -> Incident:
    """Of the new incident."""
    body = event.body
    return replace(
        state,
        alerts=state.alerts + len(body["alerts"]),
        firing=state.firing + len(body["alerts"]) - len(body["resolved"]),
        alert_at=event.occurred_at,
    )


def alerts_split_off(state: Incident, event: Fact) -> Incident:
    """Of the incident that they left."""
    return replace(
        state,
        alerts=max(0, state.alerts - len(event.body["alerts"])),
        firing=max(0, state.firing - event.body["firing"]),
    )


# Sentences
# ----------------------------------------------------------------------------------------------------------
def _count(number: int) -> str:
    return "an alert" if number == 1 else f"{number} alerts"


def split_from_sentence(actor: str, body: Mapping[str, Any]) -> str:
    source = body["source"]
    alerts = _count(len(body["alerts"]))
    return f"{actor} split {alerts} off from #{source['number']} “{source['title']}”{_because(body)}"


def alerts_moved_sentence(actor: str, body: Mapping[str, Any]) -> str:
    target = body["target"]
    alerts = _count(len(body["alerts"]))
    return f"{actor} split {alerts} off into #{target['number']} “{target['title']}”{_because(body)}"


def why_there(body: Mapping[str, Any]) -> str:
    """Reason why an alert is a member of the incident that was split off, after "because"."""
    return f"split off from #{body['source']['number']}{_because(body)}"


def _because(body: Mapping[str, Any]) -> str:
    return f": {body['reason']}" if body["reason"] else ""
