"""Past incidents that are like one, by TF-IDF of their words (`domain.similarity.text`) and the cosine of the angle
between them, and the team that is likely to resolve it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from incidents.domain.incident.evolve import fold
from incidents.domain.incident.state import Incident
from incidents.domain.similarity.text import Described, words
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.incident.repository import stream_of
from incidents.similarity.model_cache import CachedModel, Resolved
from incidents.similarity.team_prediction import Suggesting, Suggestion
from incidents.similarity.time_to_mitigate import Timed, TimeEstimate, TimeToMitigate
from ingest.queries import Position, moment_of, read_stream

GROUPED = 50
"""Incidents that are grouped by component."""
NEAR = 500
"""Incidents that are looked at for those that were resolved at a moment."""
LEAST: Final = 0.4
"""Least likeness: below it two incidents share no more than common words."""


class Similarity:
    """TF-IDF over described incidents, each known by an id; of those that are equally like the later wins."""

    def __init__(self, ids: Sequence[UUID], incidents: Sequence[Described]) -> None:
        self._ids = ids
        self._vectorizer = TfidfVectorizer(analyzer=words, sublinear_tf=True, dtype=np.float32)
        # A vocabulary without a word is refused; an incident without one has nothing to be compared by.
        self._matrix: Any = self._vectorizer.fit_transform(incidents) if any(map(words, incidents)) else None

    def nearest(self, incident: Described, most: int) -> list[tuple[UUID, float]]:
        """At most so many, each with its cosine, which is at least LEAST."""
        if self._matrix is None:
            return []
        scores = np.round((self._matrix @ self._vectorizer.transform([incident]).T).toarray().ravel(), 4)
        order = np.lexsort((-np.arange(len(scores)), -scores))[:most]
        return [
            (self._ids[place], round(float(scores[place]), 4)) for place in order if scores[place] >= LEAST
        ]


@dataclass(frozen=True, slots=True)
class SimilarIncident:
    """A past incident, and the cosine of its words and those asked for: from 0 to 1."""

    incident: Incident
    similarity: float

    @property
    def seconds_to_resolve(self) -> float:
        assert self.incident.resolved_at is not None
        return (self.incident.resolved_at - self.incident.opened_at).total_seconds()


@dataclass(frozen=True, slots=True)
class AlikeComponent:
    """Past incidents of one component, the latest first; without a component each stands alone."""

    component: str | None
    incidents: tuple[SimilarIncident, ...]

    @property
    def latest(self) -> SimilarIncident:
        return self.incidents[0]

    @property
    def similarity(self) -> float:
        return max(one.similarity for one in self.incidents)

    @property
    def shortest(self) -> float:
        """Seconds."""
        return min(one.seconds_to_resolve for one in self.incidents)

    @property
    def longest(self) -> float:
        return max(one.seconds_to_resolve for one in self.incidents)


def similar_components(
    incident: Incident, most: int = 5, as_of: Position | None = None
) -> list[AlikeComponent]:
    """The `GROUPED` most similar resolved incidents by component: those of the same kind first, then by similarity."""
    groups: dict[str, list[SimilarIncident]] = {}
    for one in similar_to(incident, GROUPED, as_of):
        groups.setdefault(_at_fault(one.incident) or one.incident.id, []).append(one)
    found = [
        AlikeComponent(
            _at_fault(alike[0].incident), tuple(sorted(alike, key=lambda one: -one.incident.number))
        )
        for alike in groups.values()
    ]
    kind = _kind(_at_fault(incident))
    return sorted(found, key=lambda one: (_kind(one.component) != kind, -one.similarity))[:most]


def _at_fault(incident: Incident) -> str | None:
    """The confirmed component of a resolved incident, else the one that it names."""
    confirmed = incident.confirmed_cause
    return confirmed if confirmed is not None and "/" in confirmed else incident.component


def _kind(component: str | None) -> str | None:
    return None if component is None else component.partition("/")[0]


def described(incident: Incident) -> Described:
    """An open incident says what is blamed for it, a resolved one what it was."""
    blamed = incident.component if incident.findings else None
    return Described(incident.title, incident.component, incident.labels, incident.confirmed_cause or blamed)


def similar_to(incident: Incident, most: int = 5, as_of: Position | None = None) -> list[SimilarIncident]:
    """The most similar resolved incidents first, of equals the latest; never the incident itself.

    With `as_of` those that were resolved then, as they stood, out of the nearest that are resolved now.
    """
    if as_of is not None:
        return _similar_then(incident, most, as_of)
    found = _SIMILARITY.model().nearest(described(incident), most + 1)
    rows = IncidentRow.objects.in_bulk([pk for pk, _ in found])
    alike = [SimilarIncident(state_of(rows[pk]), score) for pk, score in found if pk in rows]
    # One that was opened again since is no past incident any more.
    return [one for one in alike if one.incident.state == "resolved" and one.incident.id != incident.id][
        :most
    ]


def _similar_then(incident: Incident, most: int, as_of: Position) -> list[SimilarIncident]:
    then, alike = moment_of(as_of), list[SimilarIncident]()
    near = [] if then is None else _SIMILARITY.model().nearest(described(incident), NEAR)
    known = IncidentRow.objects.filter(pk__in=[pk for pk, _ in near], resolved_at__lte=then)
    over = set(known.values_list("pk", flat=True))
    for pk, score in near:
        if len(alike) == most:
            break
        state = fold(read_stream(stream_of(str(pk)), upto=as_of)) if pk in over else None
        if state is not None and state.state == "resolved" and state.id != incident.id:
            alike.append(SimilarIncident(state, score))
    return alike


def suggested_team(incident: Incident) -> Suggestion:
    """Team that resolved incidents with the same words; for people, and for routes that auto-assign."""
    return _TEAMS.model().suggest(described(incident))


def time_to_mitigate(incident: Incident, now: datetime) -> TimeEstimate:
    """Expected duration of an open incident, from the opening to the resolution."""
    bare = Described(incident.title, incident.component, incident.labels)
    requested = Timed(bare, incident.team, incident.severity, incident.opened_at)
    return _TIMES.model().estimate(requested, (now - incident.opened_at).total_seconds())


def _similarity(resolved: list[Resolved]) -> Similarity:
    return Similarity([one.id for one in resolved], [one.described for one in resolved])


def _teams(resolved: list[Resolved]) -> Suggesting:
    entries = [one for one in resolved if one.confirmed]
    return Suggesting([one.described for one in entries], [one.team for one in entries])


def _times(resolved: list[Resolved]) -> TimeToMitigate:
    return TimeToMitigate(
        [
            Timed(replace(one.described, cause=None), one.team, one.severity, one.opened_at, one.resolved_at)
            for one in resolved
        ]
    )


_SIMILARITY = CachedModel(_similarity)
_TEAMS = CachedModel(_teams)
_TIMES = CachedModel(_times)
