"""Incidents put aside until a time, or until something changes; and what wakes them before.

A snoozed incident loses nothing: alerts and findings go on joining it. One that gets worse wakes in any case. One that
sleeps until it changes wakes with the first alert or report that joins, and with the first blame of an analyzer that
did not blame it before; repeats of what was known are no change. It wakes as open, with its owner: somebody has to
look again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from incidents.domain.incident import commands as c
from incidents.domain.incident.state import (
    AWAKE,
    Bodies,
    Fact,
    Incident,
    at_second,
    override,
    person,
    refuse_resolved,
    replace,
)
from incidents.domain.values import (
    CommandRefusedError,
    InvalidValueError,
    optional_rfc3339,
    optional_time,
    rfc3339,
)

LONGEST: Final = timedelta(days=30)
"""Longest snooze: beyond it an incident is forgotten rather than put aside."""


def snooze(state: Incident, command: c.Snooze, now: datetime) -> Bodies:
    """Raises InvalidValueError for a time that is past or too far away."""
    refuse_resolved(state)
    if command.until is not None and command.until <= now:
        raise InvalidValueError("until", f"must be later than now, {at_second(now)}")
    if command.until is not None and command.until - now > LONGEST:
        raise InvalidValueError("until", f"must be within {LONGEST.days} days")
    if state.state == "snoozed" and state.snoozed_until == command.until:
        return []
    body = {
        "until": optional_rfc3339(command.until),
        "reason": command.reason,
        "silence": command.silence,
    }
    return [("incident.snoozed", body)]


def wake_when_due(state: Incident, _: c.Unsnooze, now: datetime) -> Bodies:
    until = state.snoozed_until
    if state.state != "snoozed" or until is None or until > now:
        return []
    return [("incident.unsnoozed", {"why": f"end of the snooze at {at_second(until)}", "undone": False})]


def undo_snooze(state: Incident, overriding: Sequence[Mapping[str, Any]] = ()) -> Bodies:
    """Back to the state before: an incident that was acknowledged is so again."""
    if state.state != "snoozed":
        raise CommandRefusedError(f"#{state.number} is not snoozed, it is {state.state}")
    if overriding:
        why = "requested despite the suppression"
        return [*override(overriding), ("incident.unsnoozed", {"why": why, "undone": True})]
    suppressed = (state.snoozed_by or "").startswith("system:")
    why = "no longer suppressed" if suppressed or state.silence is not None else ""
    return [("incident.unsnoozed", {"why": why, "undone": True})]


def unsnoozed_by(state: Incident, bodies: Bodies) -> Bodies:
    """Additions to events that wake a snoozed incident."""
    if state.state != "snoozed":
        return []
    why = next((why for type_, body in bodies if (why := _change(state, type_, body))), None)
    return [] if why is None else [("incident.unsnoozed", {"why": why, "undone": False})]


def _change(state: Incident, type_: str, body: Mapping[str, Any]) -> str | None:
    if type_ == "incident.severity_set" and not body["by_person"]:
        return f"severity raised: {body['severity']}"
    if state.silence is not None and type_ in ("incident.finding_joined", "incident.report_joined"):
        return "new finding" if type_ == "incident.finding_joined" else "reported again"
    if state.snoozed_until is not None:
        return None
    if type_ == "incident.merge_received":
        return f"#{body['incident']['number']} was merged into this incident"
    if type_ in ("incident.alerts_joined", "incident.report_joined"):
        return "new alert" if type_ == "incident.alerts_joined" else "reported again"
    if type_ == "incident.finding_joined":
        analyzer = body["finding"]["analyzer"]
        before = state.opinions.get(analyzer)
        if before is None or before.stance != "blames":
            return f"new finding of {analyzer}"
    return None


# Folding
# ----------------------------------------------------------------------------------------------------------
def snoozed(state: Incident, event: Fact) -> Incident:
    until = optional_time(event.body["until"])
    suppressed = event.actor.startswith("system:")
    return replace(
        state,
        # A suppression that begins after the override ends it.
        overridden=() if suppressed else state.overridden,
        state="snoozed",
        snoozed_until=until,
        snoozed_by=person(event.actor),
        silence=event.body.get("silence"),
    )


def unsnoozed(state: Incident, event: Fact) -> Incident:
    awake = replace(state, state="open", **AWAKE)
    if not event.body["undone"]:
        return replace(awake, acknowledged_at=None, acknowledged_by=None)
    return awake if state.acknowledged_at is None else replace(awake, state="acknowledged")


def note_planned(state: Incident, command: c.RecordMaintenance) -> list[tuple[str, Mapping[str, Any]]]:
    if state.state == "resolved":
        return []
    body = {
        "window": command.window,
        "component": command.component,
        "until": rfc3339(command.until),
        "why": command.why,
    }
    return [("incident.maintenance_noted", body)]
