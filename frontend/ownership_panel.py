"""How long each team and each owner had an incident, for its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from incidents.queries import Incident, accounted


@dataclass(frozen=True, slots=True)
class OwnershipTimes:
    """Seconds by team and by owner up to now, the longest first; who has it now is marked by `team` and `owner`."""

    teams: tuple[tuple[str, float], ...]
    owners: tuple[tuple[str, float], ...]

    @property
    def moved(self) -> bool:
        return len(self.teams) > 1


def ownership_times(state: Incident, now: datetime) -> OwnershipTimes:
    """What is counted in the incident, and for one that is open the time since."""
    counted = accounted(state, now)
    return OwnershipTimes(_longest(counted.team_seconds), _longest(counted.owner_seconds))


def _longest(counted: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(counted.items(), key=lambda one: (-one[1], one[0])))
