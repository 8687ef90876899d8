"""Past tickets that are like one, and the team that is likely to resolve it."""

from __future__ import annotations

from dataclasses import dataclass

from incidents.correlation.learned import Kept, Resolved
from incidents.correlation.likeness import Similarity
from incidents.correlation.suggesting import Suggesting, Suggestion
from incidents.domain.describing import Described
from incidents.domain.incident import Incident
from incidents.projections.models import IncidentRow
from incidents.projections.rows import state_of


@dataclass(frozen=True, slots=True)
class Alike:
    """A past ticket, and the cosine of its words and those asked for: from 0 to 1."""

    incident: Incident
    similarity: float

    @property
    def seconds_to_resolve(self) -> float:
        assert self.incident.resolved_at is not None
        return (self.incident.resolved_at - self.incident.opened_at).total_seconds()


def described(incident: Incident) -> Described:
    """An open ticket says what is blamed for it, a resolved one what it was."""
    blamed = incident.component if incident.findings else None
    return Described(incident.title, incident.component, incident.labels, incident.confirmed_cause or blamed)


def similar_to(incident: Incident, most: int = 5) -> list[Alike]:
    """The most similar resolved tickets first, of equals the latest; never the ticket itself."""
    found = _SIMILARITY.model().nearest(described(incident), most + 1)
    rows = IncidentRow.objects.in_bulk([pk for pk, _ in found])
    alike = [Alike(state_of(rows[pk]), score) for pk, score in found if pk in rows]
    # One that was opened again since is no past ticket any more.
    return [one for one in alike if one.incident.state == "resolved" and one.incident.id != incident.id][
        :most
    ]


def suggested_team(incident: Incident) -> Suggestion:
    """Which team resolved tickets that say the same; nobody acts on it but people."""
    return _TEAMS.model().suggest(described(incident))


def _similarity(resolved: list[Resolved]) -> Similarity:
    return Similarity([one.id for one in resolved], [one.described for one in resolved])


def _teams(resolved: list[Resolved]) -> Suggesting:
    told = [one for one in resolved if one.confirmed]
    return Suggesting([one.described for one in told], [one.team for one in told])


_SIMILARITY = Kept(_similarity)
_TEAMS = Kept(_teams)
