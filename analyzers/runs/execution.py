"""Execution of a run: take it up, read its window, judge, record the verdict and its events.

The recording is one transaction; all before it may happen twice. Bodies of events are read by the layers above: their
goldens are in `tests/golden/events`. `record_past_run` records a run of the past with its own times.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from io import BytesIO
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction

from analyzers import registry, runner
from analyzers.contract import Analyzer, InvalidParameterError, Window
from analyzers.registry import UnknownAnalyzerError
from analyzers.runs.models import Run, State
from analyzers.runs.windows import (
    Reading,
    UnknownInputError,
    WindowNotStoredError,
    read_run_window,
    read_stored_window,
    store_verdict,
    store_window,
)
from ingest.commands import EventType, append, lease, register_event_type
from ingest.queries import Context, Head, NewEvent, rfc3339, watermark

RECORDED = register_event_type(EventType("analysis.recorded"))
FAILED = register_event_type(EventType("analysis.failed"))
REPEATED = register_event_type(EventType("analysis.repeated"))
FINDING = register_event_type(EventType("finding.reported"))

Json = dict[str, Any]

log = structlog.get_logger("runs")
Now = Callable[[], datetime]

MOST_ATTEMPTS = 3
"""Workers that may be lost over one run before it counts as failed: it may be what kills them."""


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
"""Errors that end a run as failed. Anything else (a database that is away) leaves it to be taken up again."""


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
        _execute(run, now)
        lease.let_go(run)
    return run


def _execute(run: Run, now: Now) -> None:
    if run.attempts > MOST_ATTEMPTS:
        _record_failure(run, f"given up: {MOST_ATTEMPTS} workers ended during this run", now())
        return
    try:
        judged = _judge(run)
    except REFUSALS as refusal:
        _record_failure(run, str(refusal), now())
    else:
        _log_verdict(run, judged, record_judged(run, judged, now()))


def _log_verdict(run: Run, judged: Judged, recorded: bool) -> None:
    if not recorded:
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
    reading = read_run_window(run, analyzer) if run.repeats is None else read_stored_window(run.repeats)
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
        recorded = finish(
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
            history=[{"end": rfc3339(end), "hash": digest} for end, digest in reading.history],
            verdict_hash=judged.hash,
            identical=identical,
        )
        if recorded:
            store_verdict(judged.hash, judged.body)
            _append(run, _run_events(run, judged, identical), now)
    return recorded


def finish(run: Run, state: State, now: datetime, **results: Any) -> bool:
    """Write a run's results, inside the recording transaction; False when its token no longer counts."""
    return lease.write(run, state=state, finished_at=now, lease_until=None, **results)


def _run_events(run: Run, judged: Judged, identical: bool | None) -> list[tuple[EventType, Json]]:
    reading, verdict = judged.reading, judged.verdict
    if identical is not None:
        return [(REPEATED, repeated_body(run, verdict, judged.hash, identical))]
    history = [digest for _, digest in reading.history]
    body = recorded_body(run, verdict, reading.window.input, reading.hash, history, judged.hash)
    findings = finding_bodies(run, verdict, reading.hash) if run.report else []
    return [(RECORDED, body), *((FINDING, finding) for finding in findings)]


def _record_failure(run: Run, error: str, now: datetime) -> None:
    version = run.repeats.version if run.repeats is not None else _installed_version(run.analyzer)
    with transaction.atomic():
        if not finish(run, State.FAILED, now, version=version, error=error):
            log.warning("overtaken", attempts=run.attempts)
            return
        _append(run, [(FAILED, failed_body(run, version, error))], now)
    log.error("failed", reason=error)


def _installed_version(name: str) -> str:
    """The version of an installed analyzer, empty when there is none of that name."""
    try:
        return registry.get(name).version
    except UnknownAnalyzerError:
        return ""


def _append(run: Run, facts: list[tuple[EventType, Json]], now: datetime) -> None:
    new = [NewEvent(kind.name, body, now) for kind, body in facts]
    append(run.stream, new, Head.NEW, Context(run.requested_by, trace=str(run.id)))


def recorded_body(
    run: Run,
    verdict: Mapping[str, Any],
    input: str,
    window_hash: str,
    history: Sequence[str],
    verdict_hash: str,
) -> Json:
    """The body of `analysis.recorded`."""
    return {
        **_body_head(run, verdict),
        "input": input,
        "status": verdict["status"],
        "reason": verdict["reason"],
        "assumptions": verdict["assumptions"],
        "suspects": verdict["suspects"],
        "measures": verdict["measures"],
        "window_hash": window_hash,
        "history_hashes": list(history),
        "verdict_hash": verdict_hash,
        "input_position": run.input_position,
    }


def finding_bodies(run: Run, verdict: Mapping[str, Any], window_hash: str) -> list[Json]:
    """The bodies of `finding.reported`, one for each suspect, best first."""
    head = _body_head(run, verdict)
    return [
        {**head, "suspect": suspect, "evidence": verdict["evidence"], "window_hash": window_hash}
        for suspect in verdict["suspects"]
    ]


def failed_body(run: Run, version: str, error: str) -> Json:
    """The body of `analysis.failed`."""
    return {**_body_head(run, {"version": version, "params": run.params}), "error": error}


def repeated_body(run: Run, verdict: Mapping[str, Any], verdict_hash: str, identical: bool) -> Json:
    """The body of `analysis.repeated`: a kept window was judged again. It accuses no one anew."""
    return {
        **_body_head(run, verdict),
        "repeats": str(run.repeats_id),
        "verdict_hash": verdict_hash,
        "identical": identical,
    }


def _body_head(run: Run, verdict: Mapping[str, Any]) -> Json:
    return {
        "run": str(run.id),
        "schedule": run.schedule_key,
        "analyzer": run.analyzer,
        "version": verdict["version"],
        "params": verdict["params"],
        "region": run.region,
        "window": {"start": rfc3339(run.window_start), "end": rfc3339(run.window_end)},
    }


@dataclass(frozen=True, slots=True)
class PastRun:
    """A recorded run, and the bodies of the findings that it would have reported, best first."""

    id: str
    version: str
    findings: list[dict[str, Any]]


def record_past_run(
    name: str,
    kind: str,
    rows: Iterable[Mapping[str, Any]],
    start: datetime,
    end: datetime,
    region: str,
    actor: str,
) -> PastRun:
    """Judge rows of one kind as the window [start, end), as it would have been just after its end."""
    from analyzers.offline import choose_input  # reads files, too: loads pyarrow
    from ingest.telemetry.windows.offline import read_file, reduce

    analyzer = registry.get(name)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    tables = {kind: read_file(kind, "-", BytesIO(lines.encode()))}
    chosen = choose_input(analyzer, tables)
    window = Window(start, end, region, chosen.name, reduce(chosen, tables, start, end))
    verdict = runner.judge(analyzer, window)
    reading = Reading(window, store_window(window.sums), (), str(watermark()))
    run = Run.objects.create(
        requested_by=actor,
        analyzer=name,
        region=region,
        window_start=start,
        window_end=end,
        report=False,
        state=State.RUNNING,
        claim=uuid.uuid4(),
        created_at=end,
    )
    record_judged(run, Judged(reading, verdict, runner.verdict_json(verdict)), end)
    return PastRun(str(run.id), verdict["version"], finding_bodies(run, verdict, reading.hash))
