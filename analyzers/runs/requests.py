"""Runs that someone asks for: on a window of their choice, or again on a window that was kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from analyzers import registry
from analyzers.contract import Analyzer, InvalidParameterError, check_params
from analyzers.registry import UnknownAnalyzerError
from analyzers.runs import scheduler
from analyzers.runs.models import Run, State
from analyzers.runs.results import is_repeatable
from analyzers.runs.scheduler import send
from analyzers.runs.timing import span_text
from analyzers.runs.windows import UnknownInputError, choices

MOST_HISTORY = 48
LONGEST = timedelta(days=31)
ERA = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))


class InvalidRunError(ValueError):
    """A request that cannot be run; `field` is its wrong part."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


class RunNotRepeatableError(Exception):
    """The run cannot be done again: it has no verdict, another version of its analyzer is installed, or what it read is
    not kept any more."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run by hand. Give `end` with `start` or `length`; `length` alone means up to the newest telemetry."""

    analyzer: str
    region: str = "default"
    start: datetime | None = None
    end: datetime | None = None
    length: timedelta | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    input: str = ""
    history: int | None = None
    report: bool = True


def request_run(wanted: RunRequest, actor: str, now: datetime) -> Run:
    """Queue a run. Raises InvalidRunError."""
    analyzer = checked_analyzer(wanted.analyzer, wanted.input, wanted.params, wanted.history)
    start, end = _window(wanted, analyzer)
    run = Run(
        requested_by=actor,
        analyzer=analyzer.name,
        region=wanted.region,
        params=dict(wanted.params),
        input=wanted.input,
        window_start=start,
        window_end=end,
        history_wanted=wanted.history,
        report=wanted.report,
        created_at=now,
    )
    return _queue(run)


def request_rerun(run_id: UUID, actor: str, now: datetime) -> Run:
    """Queue a run on what another one kept. Raises Run.DoesNotExist, RunNotRepeatableError."""
    first = Run.objects.get(pk=run_id)
    if first.state != State.DONE:
        raise RunNotRepeatableError(f"the run is {first.state}: it has no verdict to compare with")
    installed = registry.installed().get(first.analyzer)
    if installed is None or installed.version != first.version:
        there = "not installed" if installed is None else f"installed as {installed.version}"
        raise RunNotRepeatableError(
            f"the run was judged by {first.analyzer} {first.version}, which is {there}; "
            "start a new run of the window instead"
        )
    if not is_repeatable(first):
        raise RunNotRepeatableError(
            "the window of the run is no longer stored: windows are stored for"
            f" {span_text(settings.RUN_RETENTION)} after their last use (DOSSIER_RUN_RETENTION); its verdict "
            f"stays readable,"
            " and a new run of the window is possible as long as its telemetry is stored"
        )
    run = Run(
        repeats=first if first.repeats is None else first.repeats,
        requested_by=actor,
        analyzer=first.analyzer,
        region=first.region,
        params=first.params,
        input=first.input,
        window_start=first.window_start,
        window_end=first.window_end,
        report=False,
        created_at=now,
    )
    return _queue(run)


def checked_analyzer(name: str, input: str, params: Mapping[str, Any], history: int | None) -> Analyzer:
    """The analyzer, if it can take all this. Raises InvalidRunError."""
    try:
        analyzer = registry.get(name)
    except UnknownAnalyzerError as error:
        raise InvalidRunError("analyzer", str(error)) from error
    try:
        check_params(analyzer, params)
    except InvalidParameterError as error:
        raise InvalidRunError("params", str(error)) from error
    try:
        choices(analyzer, input)
    except UnknownInputError as error:
        raise InvalidRunError("input", str(error)) from error
    if history is not None and not 0 <= history <= MOST_HISTORY:
        raise InvalidRunError("history", f"must be from 0 to {MOST_HISTORY} windows")
    return analyzer


def _window(wanted: RunRequest, analyzer: Analyzer) -> tuple[datetime, datetime]:
    end = wanted.end
    if end is None:
        span = scheduler.telemetry_span(scheduler.kinds_read(analyzer.name, wanted.input), wanted.region)
        if span is None:
            raise InvalidRunError(
                "window", f"nothing that {analyzer.name} reads has arrived from {wanted.region}"
            )
        end = span.latest.replace(microsecond=0) + timedelta(seconds=1)
    if (wanted.start is None) == (wanted.length is None):
        raise InvalidRunError("window", "give either its start and end, or its length")
    start = wanted.start if wanted.start is not None else end - (wanted.length or timedelta(0))
    if not (ERA[0] <= start <= ERA[1] and ERA[0] <= end <= ERA[1]):
        raise InvalidRunError("window", f"must lie between {ERA[0].year} and {ERA[1].year}")
    if not timedelta(0) < end - start <= LONGEST:
        raise InvalidRunError("window", f"must end after it starts, and be {LONGEST.days} days long at most")
    return start, end


def _queue(run: Run) -> Run:
    with transaction.atomic():
        run.save(force_insert=True)
        transaction.on_commit(send)
    return run
