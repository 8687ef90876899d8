"""A finding as the log holds it (`finding.reported`): a suspect of one run that is worth an incident."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from incidents.domain.incident.opinions import FAILS
from incidents.domain.time import optional_time, parse_rfc3339, rfc3339

FINDING_KEY: Final = "finding:"
"""How the dedup key of an incident begins that a finding opened."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`score` in [0, 1] or None; `failure_rate` a share in [0, 1] or None; times in data time.

    One finding is one component of one run: that pair is its identity. `phrase` holds `{}` for the failure rate, or
    says all in words. A `forecast` is of what has not failed yet.
    """

    run: str
    schedule: str | None
    analyzer: str
    version: str
    params: Mapping[str, Any]
    region: str
    window_start: datetime
    window_end: datetime
    component: str
    ambiguous_with: tuple[str, ...]
    score: float | None
    failure_rate: float | None
    summary: str
    sure: bool
    first_failure: datetime | None
    last_failure: datetime | None
    evidence: tuple[Mapping[str, Any], ...]
    phrase: str = FAILS
    forecast: bool = False

    @property
    def cause(self) -> frozenset[str]:
        """The component and those that the data cannot tell apart from it."""
        return frozenset((self.component, *self.ambiguous_with))

    @property
    def failures_end(self) -> datetime:
        """No failure that this finding rests on is later. Without the analyzer's word: the window's end."""
        return self.last_failure or self.window_end

    @property
    def dedup_key(self) -> str:
        """One open incident for one blamed component of a region."""
        return f"{FINDING_KEY}{self.region}:{self.component}"

    def reference(self) -> dict[str, Any]:
        """What an incident's events keep of it; the whole finding stays in the run's stream."""
        return {
            "run": self.run,
            "schedule": self.schedule,
            "analyzer": self.analyzer,
            "version": self.version,
            "region": self.region,
            "window": {"start": rfc3339(self.window_start), "end": rfc3339(self.window_end)},
            "component": self.component,
            "ambiguous_with": list(self.ambiguous_with),
            "score": self.score,
            "failure_rate": self.failure_rate,
            "phrase": self.phrase,
            "forecast": self.forecast,
            "summary": self.summary,
            "sure": self.sure,
            "first_failure": None if self.first_failure is None else rfc3339(self.first_failure),
            "last_failure": None if self.last_failure is None else rfc3339(self.last_failure),
        }


def finding_from(body: Mapping[str, Any]) -> Finding:
    """Reads the body of a `finding.reported` event."""
    suspect = body["suspect"]
    estimate = suspect.get("estimate")
    return Finding(
        run=body["run"],
        schedule=body["schedule"],
        analyzer=body["analyzer"],
        version=body["version"],
        params=body["params"],
        region=body["region"],
        window_start=parse_rfc3339(body["window"]["start"]),
        window_end=parse_rfc3339(body["window"]["end"]),
        component=suspect["component"],
        ambiguous_with=tuple(sorted(suspect.get("ambiguous_with") or ())),
        score=suspect.get("score"),
        failure_rate=None if estimate is None else estimate["failure_rate"],
        phrase=suspect.get("says") or (estimate or {}).get("phrase", FAILS),
        forecast=bool(suspect.get("forecast")),
        summary=suspect.get("summary") or "",
        sure=bool(suspect.get("sure")),
        first_failure=optional_time(suspect.get("first_failure")),
        last_failure=optional_time(suspect.get("last_failure")),
        evidence=tuple(body.get("evidence") or ()),
    )
