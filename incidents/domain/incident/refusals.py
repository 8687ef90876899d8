"""What decisions of several kinds share: how they refuse, and the bodies that more than one of them writes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from incidents.domain.incident.state import Incident
from incidents.domain.routing.rules import Routing
from incidents.domain.time import rfc3339
from incidents.domain.values import CommandRefusedError, Severity

Bodies = list[tuple[str, Mapping[str, Any]]]
"""Types and bodies of the events that a decision makes."""


def opening(id_: str, number: int, routing: Routing, group_key: str | None = None) -> dict[str, Any]:
    """How every incident opens: what it is called by, and what its route decided."""
    window = routing.grouping.window
    return {
        "id": id_,
        "number": number,
        "routing": {
            "team": routing.team,
            "rule": routing.rule,
            "path": list(routing.path),
            "explanation": routing.explanation,
        },
        "service": routing.service,
        "policy": routing.policy,
        "grouping": {
            "key": group_key,
            "by": None if routing.grouping.by is None else list(routing.grouping.by),
            "window_seconds": None if window is None else int(window.total_seconds()),
        },
    }


def raise_severity(severity: Severity, state: Incident, reason: str) -> tuple[str, dict[str, Any]]:
    body = {"severity": severity, "previous": state.severity, "by_person": False, "reason": reason}
    return "incident.severity_set", body


def resolution(
    cause: str | None, note: str, known_until: Mapping[str, datetime]
) -> tuple[str, dict[str, Any]]:
    known = {feed: rfc3339(at) for feed, at in sorted(known_until.items())}
    return "incident.resolved", {"confirmed_cause": cause, "note": note, "known_until": known}


def refuse_merged(state: Incident) -> None:
    if state.merged_into is not None:
        where = f"#{state.number} was merged into #{state.merged_number}{_resolver(state)}"
        raise CommandRefusedError(f"{where}; use that incident, or undo the merge")


def refuse_resolved(state: Incident) -> None:
    refuse_merged(state)
    if state.state == "resolved":
        raise CommandRefusedError(f"#{state.number} is resolved{_resolver(state)}; reopen it first")


def _resolver(state: Incident) -> str:
    return "" if state.resolved_at is None else f", by {state.resolved_by} at {at_second(state.resolved_at)}"


def at_second(moment: datetime) -> str:
    """A time as refusals name it: RFC 3339 to the second."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
