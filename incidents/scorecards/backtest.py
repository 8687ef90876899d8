"""A backtest: an analyzer over recorded telemetry, scored against how incidents were resolved. Records nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from analyzers.queries import (
    Cause,
    Judged,
    Named,
    Replay,
    Replayed,
    Rule,
    Score,
    judged_over,
    replay,
    replay_windows,
    score,
    verdict,
)
from incidents.domain.incident.finding import WINDOWS_NEEDED, WINDOWS_WATCHED
from incidents.domain.incident.outcome import failing_span
from incidents.domain.incident.state import Incident
from incidents.domain.values import NO_CAUSE, is_class, optional_rfc3339, rfc3339
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.scorecards.queries import share_json
from ingest.queries import watermark

RULE = Rule(WINDOWS_NEEDED, WINDOWS_WATCHED)
"""A blame counts where an incident would have opened for it."""

Progress = Callable[[int, int], None]
STATUSES = ("named", "quiet", "inconclusive", "failed")


def _silent(_done: int, _all: int) -> None:
    """No progress is shown."""


@dataclass(frozen=True, slots=True)
class Backtest:
    """Backtest: its request, windows by status, the causes it is measured by, and the score."""

    replay: Replay
    windows: Counter[str]
    causes: tuple[Cause, ...]
    score: Score
    first_error: str | None
    version: str = ""
    """Of the analyzer, where its recorded verdicts were scored."""

    def as_json(self) -> dict[str, Any]:
        requested, found = self.replay, self.score
        lead = found.median_lead
        return {
            "analyzer": requested.analyzer.name,
            "version": self.version or requested.analyzer.version,
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


def backtest(requested: Replay, progress: Progress = _silent) -> Backtest:
    """Judges every window and scores what came out. Raises NothingToReplayError.

    `progress` is called with the number of windows done and in all.
    """
    total = len(requested.windows())
    found = _Verdicts(confirmed(requested.start, requested.end, requested.regions))
    for done, window in enumerate(replay(requested), start=1):
        found.add(window)
        progress(done, total)
    return found.scored(requested, "")


def backtests_of_versions(
    requested: Replay, progress: Progress = _silent
) -> tuple[Backtest, Backtest] | None:
    """Recorded verdicts of earlier versions of the analyzer, and those of the installed one over the same windows; None
    where no earlier version judged. Raises NothingToReplayError."""
    runs = {
        (run.region, run.window_end): run
        for region in requested.regions
        for run in judged_over(region, requested.start, requested.end)
        if run.analyzer == requested.analyzer.name
        and run.version != requested.analyzer.version
        and run.length == requested.length
        and requested.start <= run.window_start
        and run.window_end <= requested.end
    }
    if not runs:
        return None
    causes = confirmed(requested.start, requested.end, requested.regions)
    was, would = _Verdicts(causes), _Verdicts(causes)
    for done, window in enumerate(replay_windows(requested, sorted(runs), watermark()), start=1):
        would.add(window)
        was.add(replace(window, verdict=verdict(runs[window.region, window.end]), error=None))
        progress(done, len(runs))
    versions = ", ".join(sorted({run.version for run in runs.values()}))
    return was.scored(requested, versions), would.scored(requested, "")


class _Verdicts:
    """Windows as they are judged, counted."""

    def __init__(self, causes: Sequence[Cause]) -> None:
        self._causes = tuple(causes)
        self._counts: Counter[str] = Counter()
        self._judged: list[Judged] = []
        self._error: str | None = None

    def add(self, window: Replayed) -> None:
        self._counts["failed" if window.verdict is None else window.verdict["status"]] += 1
        self._error = self._error or window.error
        self._judged += judged_of(window, self._causes)

    def scored(self, requested: Replay, version: str) -> Backtest:
        found = score(self._judged, self._causes, RULE)
        return Backtest(requested, self._counts, self._causes, found, self._error, version)


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
