"""Auto-assignment of an incident to the learned team: where its route says so, and nobody was there before. Pure.

It is a hand-over as people make them, so it can be rejected or undone; what was done to it once, by anybody, leaves
the incident to people.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from incidents.domain.incident.commands import HandOver
from incidents.domain.incident.decide import WORK
from incidents.domain.incident.state import Fact, Incident

_BY_PEOPLE: Final = frozenset(
    {"incident.commented", "incident.linked", "incident.severity_set", "incident.title_set"}
)
"""The same by Dossier itself is no sign that somebody looks at the incident."""


@dataclass(frozen=True, slots=True)
class Suggested:
    """A team that is sure enough to be suggested, and how many of its last `made` suggestions were `right`."""

    team: str
    probability: float
    made: int
    right: int


def heeded(
    state: Incident, past: Iterable[Fact], suggested: Suggested, route: str, teams: Collection[str]
) -> HandOver | None:
    """Hand-over by the rule `route`; None where the incident stays. `past` are all events of the incident."""
    if suggested.team == state.team or suggested.team not in teams or state.state != "open":
        return None
    if any(_touched(event) for event in past):
        return None
    record = f"; {suggested.right} of the last {suggested.made} predictions for it were right"
    return HandOver(
        suggested.team,
        f"predicted with {100 * suggested.probability:.0f} % from similar resolved incidents"
        f"{record if suggested.made else ''}; the route `{route}` has auto-assign",
    )


def _touched(event: Fact) -> bool:
    return event.type in WORK or (event.type in _BY_PEOPLE and event.actor.startswith("user:"))
