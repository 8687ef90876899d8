"""Do a run: take it up, read its window, judge, record.

The recording is one transaction; all before it may be done twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction

from analyzers import registry, runner
from analyzers.contract import Analyzer
from analyzers.params import InvalidParameterError
from analyzers.registry import UnknownAnalyzerError
from analyzers.runs import claims, events
from analyzers.runs.models import Run, State
from analyzers.runs.window_reader import Reading, UnknownInputError, WindowNotStoredError, read, read_kept
from analyzers.runs.window_store import keep_verdict
from ingest.commands import EventType, append, lease
from ingest.queries import Context, Head, NewEvent

log = structlog.get_logger("runs")
Now = Callable[[], datetime]


class VersionMismatchError(Exception):
    """A kept window cannot be judged again by the version that first did: another one is installed."""


REFUSALS = (
    runner.AnalysisError,
    InvalidParameterError,
    UnknownAnalyzerError,
    UnknownInputError,
    VersionMismatchError,
    WindowNotStoredError,
)
"""What ends a run as failed. Anything else (a database that is away) leaves it to be taken up again."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, where it came from, and the bytes that it must have again."""

    reading: Reading
    verdict: dict[str, Any]
    body: bytes

    @property
    def hash(self) -> str:
        return sha256(self.body).hexdigest()


def execute(run_id: UUID, now: Now) -> Run | None:
    """Do the run; the run as it was taken up, None when it is done or in other hands."""
    run = lease.take_up(Run, run_id, now())
    if run is None:
        return None
    with structlog.contextvars.bound_contextvars(trace=str(run.id), analyzer=run.analyzer, region=run.region):
        if run.attempts > claims.MOST_ATTEMPTS:
            _record_failure(run, f"given up after {claims.MOST_ATTEMPTS} workers were lost over it", now())
            return run
        try:
            judged = _judge(run)
        except REFUSALS as refusal:
            _record_failure(run, str(refusal), now())
        else:
            _record_verdict(run, judged, record_judged(run, judged, now()))
    return run


def _record_verdict(run: Run, judged: Judged, held: bool) -> None:
    if not held:
        log.warning("overtaken", attempts=run.attempts)
        return
    verdict = judged.verdict
    log.info(
        "judged",
        status=verdict["status"],
        seconds=verdict["measures"]["seconds"],
        identical=_is_identical(run, judged),
    )


def _is_identical(run: Run, judged: Judged) -> bool | None:
    """Whether a repeated run came to the same bytes; None for a first one."""
    return None if run.repeats is None else judged.hash == run.repeats.verdict_hash


def _judge(run: Run) -> Judged:
    analyzer = registry.get(run.analyzer)
    if run.repeats is not None:
        _check_version(analyzer, run.repeats)
    reading = read(run, analyzer) if run.repeats is None else read_kept(run.repeats)
    limit = lease.lease().total_seconds() / 2  # the other half is for reading and recording
    verdict = runner.judge(analyzer, reading.window, run.params, limit=limit)
    return Judged(reading, verdict, runner.verdict_json(verdict))


def _check_version(analyzer: Analyzer, first: Run) -> None:
    if analyzer.version != first.version:
        raise VersionMismatchError(
            f"the run was judged by {analyzer.name} {first.version}; installed is {analyzer.version}"
        )


def record_judged(run: Run, judged: Judged, now: datetime) -> bool:
    """Write a verdict down, in one transaction; False where the run is in other hands by now."""
    reading, verdict = judged.reading, judged.verdict
    run.input_position = reading.position
    identical = _is_identical(run, judged)
    with transaction.atomic():
        held = claims.finish(
            run,
            State.DONE,
            now,
            version=verdict["version"],
            params=verdict["params"],
            input=reading.window.input,
            input_position=reading.position,
            status=verdict["status"],
            reason=verdict["reason"] or "",
            blamed=[{"component": one["component"], "score": one["score"]} for one in verdict["suspects"]],
            seconds=verdict["measures"]["seconds"],
            window_hash=reading.hash,
            history=[{"end": events.instant(end), "hash": kept} for end, kept in reading.history],
            verdict_hash=judged.hash,
            identical=identical,
        )
        if held:
            keep_verdict(judged.hash, judged.body)
            _append(run, _run_events(run, judged, identical), now)
    return held


def _run_events(run: Run, judged: Judged, identical: bool | None) -> list[tuple[EventType, events.Json]]:
    reading, verdict = judged.reading, judged.verdict
    if identical is not None:
        return [(events.REPEATED, events.repeated(run, verdict, judged.hash, identical))]
    history = [kept for _, kept in reading.history]
    body = events.recorded(run, verdict, reading.window.input, reading.hash, history, judged.hash)
    findings = events.findings(run, verdict, reading.hash) if run.report else []
    return [(events.RECORDED, body), *((events.FINDING, finding) for finding in findings)]


def _record_failure(run: Run, error: str, now: datetime) -> None:
    version = run.repeats.version if run.repeats is not None else _installed_version(run.analyzer)
    with transaction.atomic():
        if not claims.finish(run, State.FAILED, now, version=version, error=error):
            log.warning("overtaken", attempts=run.attempts)
            return
        _append(run, [(events.FAILED, events.failed(run, version, error))], now)
    log.error("failed", reason=error)


def _installed_version(name: str) -> str:
    """The version of an installed analyzer, empty when there is none of that name."""
    try:
        return registry.get(name).version
    except UnknownAnalyzerError:
        return ""


def _append(run: Run, said: list[tuple[EventType, events.Json]], now: datetime) -> None:
    new = [NewEvent(kind.name, body, now) for kind, body in said]
    append(run.stream, new, Head.NEW, Context(run.requested_by, trace=str(run.id)))
