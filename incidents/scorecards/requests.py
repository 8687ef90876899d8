"""Ask for a backtest, and take it back. What is asked is checked here, for the console, the API and the command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from analyzers import queries as analyzers
from analyzers.commands import InvalidParameterError, check_params
from analyzers.contract import Analyzer
from analyzers.queries import NothingToReplayError, Replay, Schedule
from incidents.incident.models import AnalyzerOutcomeRow
from incidents.scorecards.models import UNFINISHED, BacktestRow, State
from incidents.scorecards.worker import send
from ingest.queries import telemetry_whole_for

LENGTH, EVERY = timedelta(hours=1), timedelta(minutes=5)
MOST_WINDOWS = 10_000
"""Of one backtest, which keeps a line for each."""
MOST_WAITING = 20
ERA = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
SHORTEST = timedelta(seconds=1)
LONGEST = timedelta(days=31)


class InvalidBacktestError(ValueError):
    """A request that cannot be judged; `field` is its wrong part."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


@dataclass(frozen=True, slots=True)
class BacktestRequest:
    """A backtest of every window that lies in `[start, end)`; without `length` and `every`, as the analyzer's schedule
    cuts them. Without regions: all that were heard. `against`: the windows of that backtest, whatever else is said."""

    analyzer: str
    start: datetime
    end: datetime
    params: Mapping[str, Any] = field(default_factory=dict)
    length: timedelta | None = None
    every: timedelta | None = None
    regions: tuple[str, ...] = ()
    against: UUID | None = None


def request_backtest(request: BacktestRequest, actor: str, now: datetime) -> BacktestRow:
    """Queue it. Raises InvalidBacktestError."""
    replay, other = checked(request, now)
    with transaction.atomic():
        if BacktestRow.objects.filter(state__in=UNFINISHED).count() >= MOST_WAITING:
            raise InvalidBacktestError(
                "analyzer", f"{MOST_WAITING} backtests are under way; wait for one, or cancel one"
            )
        row = BacktestRow.objects.create(
            analyzer=replay.analyzer.name,
            version=replay.analyzer.version,
            params=dict(replay.params),
            regions=list(replay.regions),
            start=replay.start,
            end=replay.end,
            length=replay.length,
            every=replay.every,
            against=other,
            requested_by=actor,
            created_at=now,
        )
        transaction.on_commit(send)
    return row


def cancel(id: UUID, now: datetime) -> bool:
    """Stop it; False where it is over already. What was judged stays. Whoever works on it finds out at its next
    window."""
    found = BacktestRow.objects.filter(pk=id, state__in=UNFINISHED)
    return found.update(state=State.CANCELLED, finished_at=now, claim=None, lease_until=None) == 1


def checked(request: BacktestRequest, now: datetime) -> tuple[Replay, BacktestRow | None]:
    """Replay of a request, and the backtest whose windows it takes. Raises InvalidBacktestError."""
    analyzer = _analyzer(request.analyzer)
    try:
        params = check_params(analyzer, request.params)
    except InvalidParameterError as error:
        raise InvalidBacktestError("params", str(error)) from error
    other = _other(request)
    if other is not None:
        cut = Replay(
            analyzer, params, tuple(other.regions), other.start, other.end, other.length, other.every
        )
        return cut, other
    start, end = _span(request)
    length, every = cadence(analyzer.name, request.length, request.every)
    for name, span in (("length", length), ("every", every)):
        if not SHORTEST <= span <= LONGEST:
            raise InvalidBacktestError(name, f"must be from 1 s to {LONGEST.days} days")
    oldest = retained_since(analyzer, now)
    if end <= oldest:
        raise InvalidBacktestError("end", f"telemetry is kept from {oldest:%Y-%m-%d %H:%M} UTC on")
    regions = tuple(dict.fromkeys(request.regions)) or analyzers.regions_of_analyzer(analyzer.name)
    replay = Replay(analyzer, params, regions, max(start, oldest), end, length, every)
    _check_count(replay)
    return replay, None


def last_resolved_failure(analyzer: str) -> datetime | None:
    """Time of the last failure of the cause of the latest resolved incident that scores this analyzer; None without
    one."""
    of_it = AnalyzerOutcomeRow.objects.filter(analyzer=analyzer, incident__state="resolved")
    row = of_it.select_related("incident").order_by("-incident__resolved_at").first()
    return None if row is None else row.incident.last_failure or row.incident.resolved_at


def cadence(
    analyzer: str, length: timedelta | None = None, every: timedelta | None = None
) -> tuple[timedelta, timedelta]:
    """Default cut of windows: that of the analyzer's first schedule."""
    schedule = Schedule.objects.filter(analyzer=analyzer).order_by("length", "name").first()
    usual = (LENGTH, EVERY) if schedule is None else (schedule.length, schedule.every)
    return usual[0] if length is None else length, usual[1] if every is None else every


def retained_since(analyzer: Analyzer, now: datetime) -> datetime:
    """Earliest begin of windows: those that retention has dropped cannot be judged again."""
    kinds = {kind for one in analyzer.inputs for kind in one.kinds}
    return now.astimezone(UTC) - telemetry_whole_for(kinds)


def _analyzer(name: str) -> Analyzer:
    try:
        return analyzers.analyzer(name)
    except analyzers.UnknownAnalyzerError as error:
        raise InvalidBacktestError("analyzer", str(error)) from error


def _other(request: BacktestRequest) -> BacktestRow | None:
    if request.against is None:
        return None
    other = BacktestRow.objects.filter(pk=request.against).first()
    if other is None:
        raise InvalidBacktestError("against", "no such backtest")
    if other.total is None:
        raise InvalidBacktestError(
            "against", "it has not started, so its windows are unknown; wait for its start"
        )
    return other


def _span(request: BacktestRequest) -> tuple[datetime, datetime]:
    start, end = request.start.astimezone(UTC), request.end.astimezone(UTC)
    for name, moment in (("start", start), ("end", end)):
        if not ERA[0] <= moment <= ERA[1]:
            raise InvalidBacktestError(name, f"must lie between {ERA[0].year} and {ERA[1].year}")
    if start >= end:
        raise InvalidBacktestError("end", "must be after the start")
    return start, end


def _check_count(replay: Replay) -> None:
    """So that nothing is planned that nobody waits for."""
    if (replay.end - replay.start) / replay.every * max(1, len(replay.regions)) > 100 * MOST_WINDOWS:
        raise InvalidBacktestError("every", f"gives more than {MOST_WINDOWS:,} windows; choose a longer one")
    try:
        count = len(replay.windows())
    except NothingToReplayError as error:
        raise InvalidBacktestError("start", str(error)) from error
    if count > MOST_WINDOWS:
        raise InvalidBacktestError(
            "every", f"gives {count:,} windows, more than {MOST_WINDOWS:,}; choose a longer one"
        )
