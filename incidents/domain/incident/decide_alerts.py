"""What follows from alerts: incidents that they open, join and leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from incidents.domain.incident import commands as c
from incidents.domain.incident.finding_placement import is_worse
from incidents.domain.incident.grouping import Member, in_common, is_storm, worst
from incidents.domain.incident.refusals import Bodies, opening, raise_severity, refuse_resolved, resolution
from incidents.domain.incident.state import Incident
from incidents.domain.incident.storms import storm_title
from incidents.domain.values import Severity


def open_for_alerts(command: c.OpenForAlerts) -> Bodies:
    opened = {
        **opening(command.id, command.number, command.routing, command.group_key),
        **(_of_a_storm(command) if is_storm(command.dedup_key) else _of_a_group(command)),
        "severity": command.routing.severity or worst(alert.severity for alert in command.alerts),
        "ambiguous_with": [],
        "region": None,
        "dedup_key": command.dedup_key,
        "alerts": 0,
        "verdict": None,
        "finding": None,
        "why": command.why,
    }
    members = [Member(alert.alert, alert.title, alert.severity) for alert in command.alerts]
    return [("incident.opened", opened), _members_joined(members, command.why)]


def _of_a_group(command: c.OpenForAlerts) -> dict[str, Any]:
    """What an incident is about: its first alert, and what all of them say alike."""
    first = command.alerts[0]
    return {
        "title": first.title,
        "description": first.description,
        "component": first.component,
        "labels": in_common(command.alerts),
        "links": [dict(link) for link in first.links],
    }


def _of_a_storm(command: c.OpenForAlerts) -> dict[str, Any]:
    """A storm is not about its first alert: whatever comes after that has another component and other labels."""
    components = {alert.component for alert in command.alerts if alert.component is not None}
    return {
        "title": storm_title(command.alerts[0].integration, len(command.alerts), components),
        "description": "",
        "component": None,
        "labels": {},
        "links": [],
    }


def _members_joined(members: Sequence[Member], why: str) -> tuple[str, dict[str, Any]]:
    body = {
        "alerts": [member.alert for member in members],
        "new": sum(not member.again for member in members),
        "title": members[-1].title,
        "why": why,
    }
    return "incident.alerts_joined", body


def join_alerts(state: Incident, command: c.JoinAlerts) -> Bodies:
    refuse_resolved(state)
    severity = worst(member.severity for member in command.members)
    return [
        _members_joined(command.members, command.why),
        *_worsened(state, severity, "a joined alert has a higher severity"),
    ]


def note_worse(state: Incident, command: c.RaiseSeverity) -> Bodies:
    return _worsened(state, command.severity, f"severity of an alert raised: {command.title}")


def _worsened(state: Incident, severity: Severity, reason: str) -> Bodies:
    if state.state == "resolved" or state.severity_by_person or not is_worse(severity, state.severity):
        return []
    return [raise_severity(severity, state, reason)]


def resolve_alerts(_: Incident, command: c.ResolveAlerts) -> Bodies:
    return [
        ("incident.alerts_resolved", {"alerts": list(command.alerts), "flapping": list(command.flapping)})
    ]


def auto_resolve(state: Incident, command: c.AutoResolve) -> Bodies:
    """Alerts that are over resolve an incident that only they made; what else is known waits for a person."""
    if state.state == "resolved" or state.firing or state.findings or state.alert_at is None:
        return []
    if any(one.waits for one in state.merged.values()):
        return []
    return [resolution(None, command.why, command.known_until)]
