"""What decisions of several kinds share: how they refuse, and the bodies that more than one of them writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from incidents.domain.incident import Incident
from incidents.domain.routing import Routing
from incidents.domain.values import Severity

Bodies = list[tuple[str, Mapping[str, Any]]]
"""Types and bodies of the events that a decision makes."""


class Refused(Exception):
    """The command does not fit the state the incident is in; the reason is a sentence for whoever asked."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def opening(id_: str, number: int, routing: Routing) -> dict[str, Any]:
    decision = {"team": routing.team, "rule": routing.rule, "explanation": routing.explanation}
    return {"id": id_, "number": number, "routing": decision}


def raise_severity(severity: Severity, state: Incident, reason: str) -> tuple[str, dict[str, Any]]:
    body = {"severity": severity, "previous": state.severity, "by_person": False, "reason": reason}
    return "incident.severity_set", body


def refuse_resolved(state: Incident) -> None:
    if state.state == "resolved":
        raise Refused(f"#{state.number} is resolved; reopen it first")
