"""Details of an incident below the first screen, as one typed object: `incident_details(number, as_of)`.

Onset, changes, times per team and records of analyzers decide nothing in the first second: the page does not wait for
them, it asks for them once it is there and again with every change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from frontend.evidence import Strip
from frontend.incident_page import alert_list, examine, strip_shown
from incidents import queries
from incidents.domain.incident.state import Failure
from incidents.incident.view import failure_shown
from incidents.onsets.queries import Beginning, beginning
from incidents.queries import Incident, Opinion, View, accounted
from incidents.scorecards.queries import Card, scorecards
from ingest.queries import Position


@dataclass(frozen=True, slots=True)
class OpinionRecord:
    """The opinion of an analyzer and its scorecard."""

    opinion: Opinion
    card: Card


@dataclass(frozen=True, slots=True)
class IncidentDetails:
    """`records` are empty for a past moment: a scorecard is of now."""

    incident: Incident
    failure: Failure
    strip: Strip
    beginning: Beginning
    records: Sequence[OpinionRecord]
    ownership: OwnershipTimes

    @property
    def supported(self) -> int:
        """Changes whose test supports them as the cause."""
        return sum(one.test.verdict == "supported" for one in self.beginning.changes)


def incident_details(number: int, as_of: Position | None = None) -> IncidentDetails:
    """Of incident `number` now, or at log position `as_of`. Raises IncidentNotFoundError."""
    reference = str(number)
    view = queries.get(reference, as_of)
    entries = queries.timeline(reference, as_of)
    state, failure, began = view.incident, failure_shown(view, as_of), beginning(view.incident, as_of)
    examined = examine(view, entries, as_of)
    return IncidentDetails(
        incident=state,
        failure=failure,
        strip=strip_shown(state, failure, began, examined, alert_list(reference, "", as_of), as_of),
        beginning=began,
        records=[] if as_of else _records(view),
        ownership=ownership_times(state, entries[-1].last_at if as_of else timezone.now()),
    )


def _records(view: View) -> list[OpinionRecord]:
    opinions = view.opinions
    cards = scorecards([one.analyzer for one in opinions], waiting=False) if opinions else {}
    return [OpinionRecord(one, cards[one.analyzer]) for one in opinions]


@dataclass(frozen=True, slots=True)
class OwnershipTimes:
    """Seconds by team and by owner up to now, the longest first; who has it now is marked by `team` and `owner`."""

    teams: tuple[tuple[str, float], ...]
    owners: tuple[tuple[str, float], ...]

    @property
    def moved(self) -> bool:
        return len(self.teams) > 1


def ownership_times(state: Incident, now: datetime) -> OwnershipTimes:
    """Times counted in the incident, and for an open one the time since."""
    counted = accounted(state, now)
    return OwnershipTimes(_longest(counted.team_seconds), _longest(counted.owner_seconds))


def _longest(counted: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(counted.items(), key=lambda one: (-one[1], one[0])))
