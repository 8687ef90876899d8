"""Suppressions that a person overrides: the incident notifies although they cover it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from incidents.domain.incident.refusals import Bodies
from incidents.domain.incident.state import Fact, Incident, Overridden, person
from incidents.domain.time import parse_rfc3339


def override(overriding: Sequence[Mapping[str, Any]]) -> Bodies:
    """The incident notifies although these silences and maintenance windows cover it."""
    if not overriding:
        return []
    return [("incident.suppression_overridden", {"covers": [dict(one) for one in overriding]})]


def suppression_overridden(state: Incident, event: Fact) -> Incident:
    found = tuple(
        Overridden(
            id=one["id"],
            starts_at=parse_rfc3339(one["starts_at"]),
            until=parse_rfc3339(one["until"]),
            why=one["why"],
            by=person(event.actor),
        )
        for one in event.body["covers"]
    )
    again = {(one.id, one.starts_at) for one in found}
    kept = tuple(
        one
        for one in state.overridden
        if (one.id, one.starts_at) not in again and one.until > event.occurred_at
    )
    return replace(state, overridden=(*kept, *found))
