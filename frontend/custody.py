"""How long each team and each owner had a ticket, for its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from incidents.queries import Incident


@dataclass(frozen=True, slots=True)
class Custody:
    """Seconds by team and by owner up to now, the longest first; who has it now is marked by `team` and `owner`."""

    teams: tuple[tuple[str, float], ...]
    owners: tuple[tuple[str, float], ...]

    @property
    def moved(self) -> bool:
        return len(self.teams) > 1


def custody(state: Incident, now: datetime) -> Custody:
    """What is counted in the ticket, and for one that is open the time since."""
    since = 0.0 if state.state == "resolved" else max(0.0, (now - state.counted_at).total_seconds())
    owners = {} if state.owner is None else {state.owner: since}
    return Custody(_longest(state.team_seconds, {state.team: since}), _longest(state.owner_seconds, owners))


def _longest(counted: Mapping[str, float], more: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    total = {name: counted.get(name, 0.0) + more.get(name, 0.0) for name in {**counted, **more}}
    return tuple(sorted(total.items(), key=lambda one: (-one[1], one[0])))
