"""Knowledge of failures at a moment: the position of the telemetry, where it is behind the clock."""

from __future__ import annotations

from datetime import datetime

from analyzers.queries import telemetry_behind
from incidents.domain.incident.finding import feed_of


def known_until(region: str | None, now: datetime) -> dict[str, datetime]:
    """By feed, for a resolution at `now`; empty where all telemetry is live. A region of None is every region."""
    return {feed_of(kind, where): at for (kind, where), at in telemetry_behind(region, now).items()}
