"""Schedules of analyzers that a file adds, changes or removes, and versions of analyzers, over the recorded past.

A blame that counts and that nobody else reported opens an incident: its calls are those of the policy of the team that
the routes give it; what others reported adds none. An incident is known from the first blame that counts or the first
report of others on. Without either it is missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from analyzers.api.fields import SpanField
from analyzers.queries import Cause, NothingToReplayError, Replay, Schedule, Share
from incidents.api.config.views import Change
from incidents.domain.configuration_replay import Estimate, mean, total
from incidents.domain.routing.rules import Subject
from incidents.domain.values import parse_rfc3339
from incidents.scorecards.backtest import Backtest, backtest, backtests_of_versions
from incidents.scorecards.compare import Blame, compare
from incidents.scorecards.requests import BacktestRequest, InvalidBacktestError, checked
from ingest.queries import now_utc

SCHEDULES: Final = "analysis_schedules"
CallsOf = Callable[[Subject, datetime], int]
"""Calls of an incident that a finding opens at a moment."""


@dataclass(frozen=True, slots=True)
class ComparedAnalyzer:
    """`calls` are of blames that nobody else reported. `known` incidents with a confirmed cause are known to both,
    `missed` of `found` to the first alone, `gained` to the second alone."""

    calls_before: int
    calls_after: int
    more: int
    fewer: int
    net: Estimate
    known: int
    earlier: int
    later: int
    minutes: Estimate
    missed: tuple[int, ...]
    found: int
    gained: int

    def as_json(self) -> dict[str, Any]:
        share = Share(len(self.missed), self.found)
        low, high = share.interval if self.found else (0.0, 1.0)
        return {
            "calls": {
                "before": self.calls_before,
                "after": self.calls_after,
                "more": self.more,
                "fewer": self.fewer,
                "net": self.net.as_json(),
            },
            "known": {
                "incidents": self.known,
                "earlier": self.earlier,
                "later": self.later,
                "minutes": self.minutes.as_json(),
            },
            "missed": {
                "incidents": len(self.missed),
                "of": self.found,
                "share": share.value,
                "low": round(low, 4),
                "high": round(high, 4),
                "numbers": list(self.missed),
            },
            "gained": self.gained,
        }


@dataclass(frozen=True, slots=True)
class ReplayedSchedule:
    """A schedule before and after: a side is None where there is none, or where `why` says why nothing was compared.
    `versions` are those whose recorded verdicts the first side is."""

    schedule: str
    before: Backtest | None
    after: Backtest | None
    compared: ComparedAnalyzer | None
    why: str = ""
    versions: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "schedule": self.schedule,
            "before": None if self.before is None else self.before.as_json(),
            "after": None if self.after is None else self.after.as_json(),
            "compared": None if self.compared is None else self.compared.as_json(),
            "versions": self.versions or None,
            "reason": self.why or None,
        }


def replayed_schedules(
    changes: Iterable[Change], start: datetime, end: datetime, calls_of: CallsOf, most_windows: int | None
) -> Iterator[ReplayedSchedule]:
    """The schedules that are changed, both sides; `most_windows` is the limit of each."""
    for change in changes:
        if change.kind != SCHEDULES:
            continue
        try:
            before, after = (
                None
                if one is None or one.get("enabled") is False
                else backtest(_limited(_replay_of(one, start, end), most_windows))
                for one in (change.before, change.after)
            )
        except (InvalidBacktestError, NothingToReplayError) as error:
            yield ReplayedSchedule(change.key, None, None, None, str(error))
            continue
        if before is not None or after is not None:
            yield ReplayedSchedule(change.key, before, after, compared(before, after, calls_of))


def replayed_versions(
    start: datetime, end: datetime, calls_of: CallsOf, most_windows: int | None
) -> Iterator[ReplayedSchedule]:
    """Schedules of which earlier versions of their analyzers judged windows of the span."""
    for row in Schedule.objects.filter(enabled=True).order_by("name"):
        request = BacktestRequest(
            row.analyzer,
            start,
            end,
            row.params,
            row.length,
            row.every,
            (row.region,) if row.region else (),
        )
        try:
            found = backtests_of_versions(_limited(checked(request, now_utc())[0], most_windows))
        except (InvalidBacktestError, NothingToReplayError) as error:
            yield ReplayedSchedule(row.name, None, None, None, str(error))
            continue
        if found is not None:
            was, would = found
            yield ReplayedSchedule(row.name, was, would, compared(was, would, calls_of), versions=was.version)


def _limited(requested: Replay, most: int | None) -> Replay:
    if most is not None and (count := len(requested.windows())) > most:
        raise InvalidBacktestError(
            "every",
            f"{count:,} windows, more than {most:,} in one request; use manage.py config diff --replay",
        )
    return requested


def _replay_of(schedule: Mapping[str, Any], start: datetime, end: datetime) -> Replay:
    span = SpanField()
    requested = BacktestRequest(
        analyzer=schedule["analyzer"],
        start=start,
        end=end,
        params=schedule.get("params") or {},
        length=span.to_internal_value(schedule["length"]),
        every=span.to_internal_value(schedule["every"]),
        regions=(schedule["region"],) if schedule.get("region") else (),
    )
    return checked(requested, now_utc())[0]


# Compared
# ----------------------------------------------------------------------------------------------------------
def compared(before: Backtest | None, after: Backtest | None, calls_of: CallsOf) -> ComparedAnalyzer:
    """Both sides; a side of None finds nothing, and one is there."""
    name = next(one.replay.analyzer.name for one in (before, after) if one is not None)
    was, would = (() if one is None else one.as_json()["blames"] for one in (before, after))
    pairs = compare(was, would)
    calls = [(_calls(name, one, calls_of), _calls(name, other, calls_of)) for one, other in pairs.both]
    calls += [(_calls(name, one, calls_of), 0) for one in pairs.first_alone]
    calls += [(0, _calls(name, one, calls_of)) for one in pairs.second_alone]
    moved = [new - old for old, new in calls]
    causes = next((one.causes for one in (before, after) if one is not None), ())
    old_times, new_times = (_known_since(causes, one) for one in (before, after))
    minutes = [
        (new_times[number] - old_times[number]).total_seconds() / 60
        for number in sorted(old_times.keys() & new_times.keys())
    ]
    return ComparedAnalyzer(
        calls_before=sum(old for old, _ in calls),
        calls_after=sum(new for _, new in calls),
        more=sum(max(0, one) for one in moved),
        fewer=sum(max(0, -one) for one in moved),
        net=total(moved),
        known=len(minutes),
        earlier=sum(one < 0 for one in minutes),
        later=sum(one > 0 for one in minutes),
        minutes=mean(minutes),
        missed=tuple(sorted(old_times.keys() - new_times.keys())),
        found=len(old_times),
        gained=len(new_times.keys() - old_times.keys()),
    )


def _calls(analyzer: str, blame: Blame, calls_of: CallsOf) -> int:
    if blame["outcome"] == "right" and not blame["found_alone"]:
        return 0
    at = parse_rfc3339(blame["counted_at"])
    subject = Subject(
        component=blame["component"],
        analyzer=analyzer,
        confidence=blame["score"],
        severity="error",
        at=at,
    )
    return calls_of(subject, at)


def _known_since(causes: Iterable[Cause], side: Backtest | None) -> dict[int, datetime]:
    """By incident with a confirmed cause, when it was known by the analyzer or by others."""
    found = {
        one.incident: one.reported_at
        for one in causes
        if one.component is not None and one.reported_at is not None
    }
    for one in () if side is None else side.score.scored:
        at = one.blame.counted_at
        if one.outcome == "right" and one.incident is not None and at is not None:
            found[one.incident] = min(at, found.get(one.incident, at))
    return found
