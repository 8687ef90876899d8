"""An incident as API and console show it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings

from incidents.domain.incident.failure import Failure
from incidents.domain.incident.opinions import Opinion
from incidents.domain.incident.state import Incident
from incidents.domain.time import optional_rfc3339, rfc3339


@dataclass(frozen=True, slots=True)
class View:
    """An incident and the log position at which this view of it is true."""

    incident: Incident
    version: int
    position: str

    @property
    def url(self) -> str:
        return f"{settings.PUBLIC_URL}/incidents/{self.incident.number}"

    @property
    def opinions(self) -> list[Opinion]:
        """Who blames it first, the most probable first; then who names something else, then who sees nothing."""
        said = self.incident.opinions.values()
        return sorted(said, key=lambda one: (-one.weight, -(one.score or 0.0), one.analyzer))

    def _merged(self) -> list[dict[str, Any]]:
        found = sorted(self.incident.merged.items(), key=lambda item: item[1].number)
        return [{"id": id_, "number": one.number, "title": one.title} for id_, one in found]

    def _overridden(self) -> list[dict[str, Any]]:
        return [
            {**asdict(one), "starts_at": rfc3339(one.starts_at), "until": rfc3339(one.until)}
            for one in self.incident.overridden
        ]

    def as_json(self, failure: Failure) -> dict[str, Any]:
        """`failure`: its state at the moment of this view (`incidents.incident.failures`)."""
        i = self.incident
        return {
            "id": i.id,
            "number": i.number,
            "title": i.title,
            "description": i.description,
            "state": i.state,
            "severity": i.severity,
            "component": i.component,
            "ambiguous_with": list(i.ambiguous_with),
            "region": i.region,
            "team": i.team,
            "routing": i.routing,
            "service": i.service,
            "policy": i.policy,
            "owner": i.owner,
            "dedup_key": i.dedup_key,
            "labels": dict(i.labels),
            "links": [dict(link) for link in i.links],
            "confidence": i.confidence,
            "verdict": i.verdict,
            "analyzer": i.analyzer,
            "opinions": [one.as_json() for one in self.opinions],
            "still_blamed": bool(i.blamed_by),
            "alerts": i.alerts,
            "firing": i.firing,
            "findings": i.findings,
            "hops": i.hops,
            "bounces": i.bounces,
            "handed_from": i.handed_from,
            "accepted_at": optional_rfc3339(i.accepted_at),
            "accepted_by": i.accepted_by,
            "team_since": rfc3339(i.team_since),
            "custody": {
                "teams": dict(i.team_seconds),
                "owners": dict(i.owner_seconds),
                "until": rfc3339(i.counted_at),
            },
            "seconds_to_team": i.seconds_to_team,
            "opened_at": rfc3339(i.opened_at),
            "opened_by": i.opened_by,
            "acknowledged_at": optional_rfc3339(i.acknowledged_at),
            "acknowledged_by": i.acknowledged_by,
            "snoozed_until": optional_rfc3339(i.snoozed_until),
            "snoozed_by": i.snoozed_by,
            "silence": i.silence,
            "overridden": self._overridden(),
            "merged_into": i.merged_into and {"id": i.merged_into, "number": i.merged_number},
            "merged": self._merged(),
            "resolved_at": optional_rfc3339(i.resolved_at),
            "resolved_by": i.resolved_by,
            "confirmed_cause": i.confirmed_cause,
            "failure": failure.as_json(),
            "failing_since": optional_rfc3339(i.failing_since),
            "last_failure": optional_rfc3339(i.last_failure),
            "position": self.position,
            "url": self.url,
        }
