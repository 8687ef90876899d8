"""What runs say in the log. The bodies are read by the floors above: see the goldens before changing one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from analyzers.runs.models import Run
from ingest.commands import EventType, register_event_type

RECORDED = register_event_type(EventType("analysis.recorded"))
FAILED = register_event_type(EventType("analysis.failed"))
REPEATED = register_event_type(EventType("analysis.repeated"))
FINDING = register_event_type(EventType("finding.reported"))

Json = dict[str, Any]


def instant(moment: datetime) -> str:
    """RFC 3339 in UTC with `Z`."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_instant(text: str) -> datetime:
    """The time of an RFC 3339 text, in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)


def recorded(
    run: Run,
    verdict: Mapping[str, Any],
    input: str,
    window_hash: str,
    history: Sequence[str],
    verdict_hash: str,
) -> Json:
    """The body of `analysis.recorded`."""
    return {
        **_head(run, verdict),
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


def findings(run: Run, verdict: Mapping[str, Any], window_hash: str) -> list[Json]:
    """The bodies of `finding.reported`, one for each suspect, best first."""
    head = _head(run, verdict)
    return [
        {**head, "suspect": suspect, "evidence": verdict["evidence"], "window_hash": window_hash}
        for suspect in verdict["suspects"]
    ]


def failed(run: Run, version: str, error: str) -> Json:
    """The body of `analysis.failed`."""
    return {**_head(run, {"version": version, "params": run.params}), "error": error}


def repeated(run: Run, verdict: Mapping[str, Any], verdict_hash: str, identical: bool) -> Json:
    """The body of `analysis.repeated`: a kept window was judged again. It accuses no one anew."""
    return {
        **_head(run, verdict),
        "repeats": str(run.repeats_id),
        "verdict_hash": verdict_hash,
        "identical": identical,
    }


def _head(run: Run, verdict: Mapping[str, Any]) -> Json:
    return {
        "run": str(run.id),
        "schedule": run.schedule_key,
        "analyzer": run.analyzer,
        "version": verdict["version"],
        "params": verdict["params"],
        "region": run.region,
        "window": {"start": instant(run.window_start), "end": instant(run.window_end)},
    }
