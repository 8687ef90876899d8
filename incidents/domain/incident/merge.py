"""Incidents about the same thing made one, and taken apart again.

A merged incident points to its target and is worked on no more. The target covers what it covered: its alerts that fire
are members of the target, reports and alerts of its key and findings that blame its cause join the target. Taken
apart, it stands as before, with those of its alerts that still fire; what joined the target meanwhile stays there.
"""

from __future__ import annotations

from typing import Any, Final

from incidents.domain.incident import commands as c
from incidents.domain.incident.ownership import accounted
from incidents.domain.incident.state import (
    AWAKE,
    Bodies,
    Fact,
    Incident,
    Merged,
    person,
    raise_severity,
    refuse_resolved,
    replace,
)
from incidents.domain.values import CommandRefusedError, is_worse

MOST: Final = 200
"""Incidents that one takes in: more are a storm, and want a rule."""


def merge_into(state: Incident, command: c.MergeInto) -> Bodies:
    refuse_resolved(state)
    into = {"id": command.into.id, "number": command.into.number, "title": command.into.title}
    return [("incident.merged", {"into": into, "reason": command.reason})]


def absorb(state: Incident, command: c.Absorb) -> Bodies:
    refuse_resolved(state)
    if len(state.merged) >= MOST:
        raise CommandRefusedError(f"#{state.number} already has {MOST} merged incidents")
    source = command.source
    body = {
        "incident": _reference(source),
        "cause": sorted(source.covers),
        "alerts": list(command.alerts),
        "count": source.alerts,
        "findings": source.findings,
        # What only alerts made ends with them; what a person or an analyzer had a part in waits for a person.
        "waits": not (_made_by_alerts(state) and _made_by_alerts(source)),
        "reason": command.reason,
    }
    events: Bodies = [("incident.merge_received", body)]
    if is_worse(source.severity, state.severity) and not state.severity_by_person:
        events.append(
            raise_severity(
                source.severity, state, f"#{source.number}, merged into this incident, has a higher severity"
            )
        )
    return events


def _made_by_alerts(state: Incident) -> bool:
    waits = any(one.waits for one in state.merged.values())
    return state.alert_at is not None and not state.findings and not waits


def split(state: Incident, command: c.Split) -> Bodies:
    if state.merged_into is None:
        raise CommandRefusedError(f"#{state.number} is not merged")
    body = {"from": _reference(command.target), "alerts": list(command.alerts), "reason": command.reason}
    return [("incident.unmerged", body)]


def separate(state: Incident, command: c.Separate) -> Bodies:
    if command.source.id not in state.merged:
        raise CommandRefusedError(f"#{command.source.number} is not merged into #{state.number}")
    if state.merged_into is not None:
        raise CommandRefusedError(
            f"#{state.number} is itself merged into #{state.merged_number}; undo that merge first"
        )
    body = {
        "incident": _reference(command.source),
        "alerts": list(command.alerts),
        "firing": len(command.firing),
        "reason": command.reason,
    }
    return [("incident.merge_undone", body)]


def _reference(state: Incident) -> dict[str, Any]:
    return {"id": state.id, "number": state.number, "title": state.title}


# Folding
# ----------------------------------------------------------------------------------------------------------
def merged(state: Incident, event: Fact) -> Incident:
    return accounted(
        state,
        event.occurred_at,
        state="resolved",
        merged_into=event.body["into"]["id"],
        merged_number=event.body["into"]["number"],
        resolved_at=event.occurred_at,
        resolved_by=person(event.actor),
        handed_over=None,
        firing=0,
        flapping=False,
        blamed_by=(),
        opinions={name: replace(one, schedules=()) for name, one in state.opinions.items()},
        **AWAKE,
    )


def absorbed(state: Incident, event: Fact) -> Incident:
    body, source = event.body, event.body["incident"]
    taken = Merged(
        source["number"],
        source["title"],
        tuple(body["cause"]),
        body["count"],
        body["findings"],
        body["waits"],
    )
    return replace(
        state,
        merged={**state.merged, source["id"]: taken},
        alerts=state.alerts + taken.alerts,
        findings=state.findings + taken.findings,
        firing=state.firing + len(body["alerts"]),
    )


def was_split(state: Incident, event: Fact) -> Incident:
    return accounted(
        state,
        event.occurred_at,
        state="open" if state.acknowledged_at is None else "acknowledged",
        merged_into=None,
        merged_number=None,
        resolved_at=None,
        resolved_by=None,
        firing=len(event.body["alerts"]),
    )


def separated(state: Incident, event: Fact) -> Incident:
    id_ = event.body["incident"]["id"]
    taken = state.merged.get(id_)
    if taken is None:
        return state
    return replace(
        state,
        merged={name: one for name, one in state.merged.items() if name != id_},
        alerts=max(0, state.alerts - taken.alerts),
        findings=max(0, state.findings - taken.findings),
        firing=max(0, state.firing - event.body["firing"]),
    )
