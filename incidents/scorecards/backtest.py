"""A backtest: an analyzer over recorded telemetry, scored against how incidents were resolved. Records nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from analyzers.queries import Cause, Judged, Named, Replay, Replayed, Rule, Score, replay, score
from incidents.domain.incident.finding import WINDOWS_NEEDED, WINDOWS_WATCHED
from incidents.domain.incident.outcome import failing_span
from incidents.domain.incident.state import Incident
from incidents.domain.values import NO_CAUSE, is_class, optional_rfc3339, rfc3339
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.scorecards.queries import share_json

RULE = Rule(WINDOWS_NEEDED, WINDOWS_WATCHED)
"""A blame counts where an incident would have opened for it."""

STATUSES = ("named", "quiet", "inconclusive", "failed")


@dataclass(frozen=True, slots=True)
class Backtest:
    """Backtest: its request, windows by status, the causes it is measured by, and the score."""

    replay: Replay
    windows: Counter[str]
    causes: tuple[Cause, ...]
    score: Score
    first_error: str | None

    def as_json(self) -> dict[str, Any]:
        requested, found = self.replay, self.score
        lead = found.median_lead
        return {
            "analyzer": requested.analyzer.name,
            "version": requested.analyzer.version,
            "params": dict(sorted(requested.params.items())),
            "from": rfc3339(requested.start),
            "to": rfc3339(requested.end),
            "length_seconds": requested.length.total_seconds(),
            "every_seconds": requested.every.total_seconds(),
            "regions": list(requested.regions),
            "windows": {name: self.windows[name] for name in STATUSES},
            "first_error": self.first_error,
            "resolved_incidents": len(self.causes),
            "found": len(found.scored),
            "right": found.count("right"),
            "wrong": found.count("wrong"),
            "unconfirmed": found.count("unconfirmed"),
            "matched": found.count("right") - found.alone,
            "found_first": found.found_first,
            "found_alone": found.alone,
            "missed": len(found.missed),
            "passing": found.passing,
            "median_lead_seconds": None if lead is None else lead.total_seconds(),
            "precision": share_json(found.precision),
            "recall": share_json(found.recall),
            "blames": [_blame(one) for one in found.scored],
            "missed_incidents": [_missed(one) for one in found.missed],
        }


def backtest(requested: Replay, progress: Callable[[int, int], None] = lambda _done, _all: None) -> Backtest:
    """Judges every window and scores what came out. Raises NothingToReplayError.

    `progress` is told how many windows are done, and of how many.
    """
    total = len(requested.windows())
    causes = confirmed(requested.start, requested.end, requested.regions)
    counts: Counter[str] = Counter()
    judged: list[Judged] = []
    first_error = None
    for done, window in enumerate(replay(requested), start=1):
        counts["failed" if window.verdict is None else window.verdict["status"]] += 1
        first_error = first_error or window.error
        judged += judged_of(window, causes)
        progress(done, total)
    return Backtest(requested, counts, tuple(causes), score(judged, causes, RULE), first_error)


def confirmed(start: datetime, end: datetime, regions: Sequence[str]) -> list[Cause]:
    """The resolved incidents of the regions whose cause failed in `[start, end)`, by number; not those of which only a
    class of causes is known, which say of no blame whether it is right."""
    rows = IncidentRow.objects.filter(state="resolved").order_by("number")
    causes = (
        _cause(state_of(row)) for row in rows.iterator() if not is_class(row.confirmed_cause or NO_CAUSE)
    )
    return [
        one
        for one in causes
        if one.since < end and start <= one.until and (one.region is None or one.region in regions)
    ]


def _cause(state: Incident) -> Cause:
    assert state.resolved_at is not None
    since, until = failing_span(state, state.resolved_at)
    blamed = (name for one in state.opinions.values() if one.first_at is not None for name in one.cause)
    named = {state.component, *state.ambiguous_with, *blamed}
    return Cause(
        incident=state.number,
        component=None if state.confirmed_cause == NO_CAUSE else state.confirmed_cause,
        names=frozenset(name for name in named if name),
        region=state.region,
        since=since,
        until=until,
        reported_at=state.reported_at,
    )


def judged_of(window: Replayed, causes: Iterable[Cause]) -> list[Judged]:
    """The window as the score reads it; nothing where the analyzer came to no verdict."""
    if window.verdict is None or window.verdict["status"] == "inconclusive":
        return []
    suspects = (
        Named((one["component"], *one["ambiguous_with"]), one["score"], one["sure"])
        for one in window.verdict["suspects"]
    )
    return [Judged(window.region, window.start, window.end, tuple(suspects), true_causes_in(window, causes))]


def true_causes_in(window: Replayed, causes: Iterable[Cause]) -> frozenset[str]:
    """Those of the confirmed causes, of incidents near the window, of which the window held something."""
    near = {one.component for one in causes if window.start <= one.until and one.since <= window.end}
    return frozenset(name for name in near if name and window.seen.names({name}))


def _blame(one: Any) -> dict[str, Any]:
    blame = one.blame
    return {
        "component": blame.component,
        "ambiguous_with": sorted(blame.names - {blame.component}),
        "region": blame.region,
        "start": rfc3339(blame.start),
        "end": rfc3339(blame.end),
        "counted_at": optional_rfc3339(blame.counted_at),
        "windows": blame.windows,
        "score": blame.score,
        "outcome": one.outcome,
        "incident": one.incident,
        "found_first": one.first,
        "found_alone": one.alone,
        "lead_seconds": None if one.lead is None else one.lead.total_seconds(),
    }


def _missed(cause: Cause) -> dict[str, Any]:
    return {
        "incident": cause.incident,
        "component": cause.component,
        "since": rfc3339(cause.since),
        "until": rfc3339(cause.until),
    }
