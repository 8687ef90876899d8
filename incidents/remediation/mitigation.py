"""Mitigation options of an incident of a node or a training job, with the GPU-hours that each is expected to lose.
Advice: nothing is carried out. Inputs come from the caller, else from recorded data, else from settings, and each
carries its source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import fmean, median

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from analyzers.contract import Count, Input, Paths, Reduction
from analyzers.queries import forecast_of, runs, verdict
from incidents.domain.incident.state import Incident, agreeing
from incidents.domain.remediation.comparison import Default, Mitigation, assumed, compared
from incidents.incident.models import IncidentRow
from ingest.queries import read_window

HANGS = frozenset(
    {"operation not launched", "transfer without progress", "operation mismatch", "rows of the node"}
)
"""Indicators of analyzers for which the job stands still."""
FORECAST = "failure_forecast"
JOBS_BEFORE, REPAIRS_BEFORE = timedelta(days=7), timedelta(days=90)
LEAST_REPAIRS, LEAST_GAPS, LEAST_CRASHES = 5, 3, 3
_ATTEMPTS = Input(
    "jobs",
    (
        Reduction(
            "attempts", "job_attempt", ("nodes", "job", "outcome", "start", "end"), {"attempts": Count()}
        ),
    ),
)
_HOUR = 3_600_000_000  # microseconds


def mitigation_of(state: Incident, given: Mapping[str, str], region: str, now: datetime) -> Mitigation:
    """The comparison for an incident that `can_be_mitigated`; `given` are inputs as an address or form has them, no
    empty texts. Raises InvalidValueError."""
    defaults = _defaults(state) | _repair(state, now) | _ranks(state) | _jobs(state, region, now)
    return compared(given, defaults)


def advice(state: Incident) -> Mitigation:
    """The comparison from the incident itself and settings alone, so that a report made again has the same."""
    return compared({}, _defaults(state))


# Defaults
# ----------------------------------------------------------------------------------------------------------


def _defaults(state: Incident) -> dict[str, Default]:
    per_node = float(settings.GPUS_PER_NODE)
    checkpoint = settings.CHECKPOINT_INTERVAL.total_seconds() / 60
    hangs = any(one.stance == "blames" and one.indicator in HANGS for one in state.opinions.values())
    restart = settings.JOB_RESTART_TIME.total_seconds() / 60
    migrate = settings.JOB_MIGRATION_TIME.total_seconds()
    found = assumed(per_node, checkpoint, restart, migrate) | {
        "gpus": (per_node, "setting: GPUs of one node"),
        "checkpoint_minutes": (checkpoint, "setting"),
        "restart_minutes": (restart, "setting"),
        "migrate_seconds": (migrate, "setting; 20 s is published for TrainMover at 1,024 GPUs"),
        "standby_gpus": (per_node, "setting: GPUs of one node"),
    }
    if hangs:
        found["slowdown"] = (1.0, "data: indicator of a job that stands still")
    if state.confidence is not None:
        found["probability"] = (round(state.confidence, 3), "data: confidence of the incident")
    return found | _forecast(state)


def _forecast(state: Incident) -> dict[str, Default]:
    """The probability that a forecast gives to the incident's node, and that nothing has failed yet; nothing once an
    analyzer blames it for a failure."""
    together = agreeing(state.opinions, state.cause)
    opinion = next((one for one in together if one.analyzer == FORECAST and one.forecast), None)
    run = None if opinion is None else runs().filter(pk=opinion.run, analyzer=FORECAST).first()
    found = None if run is None else forecast_of(run)
    node = None if found is None or state.component is None else found.of(state.component)
    if found is None or node is None:
        return {}
    return {
        "probability": (
            round(node.probability, 3),
            f"data: forecast of a failure within {found.hours:g} hours",
        ),
        "slowdown": (0.0, "data: a forecast, nothing has failed yet"),
        "crash_hours": (found.hours / 2, f"data: middle of the {found.hours:g} hours of the forecast"),
    }


def _repair(state: Incident, now: datetime) -> dict[str, Default]:
    kind = (state.component or "").partition("/")[0]
    past = IncidentRow.objects.filter(
        component__startswith=f"{kind}/", resolved_at__gte=now - REPAIRS_BEFORE, confirmed_cause__isnull=False
    ).exclude(confirmed_cause="none")
    hours = [
        (end - start).total_seconds() / 3600
        for start, end in past.values_list("opened_at", "resolved_at")[:1000]
        if end is not None
    ]
    if len(hours) < LEAST_REPAIRS:
        return {}
    mean = min(720.0, round(fmean(hours), 2))
    return {"repair_hours": (mean, f"data: mean of {len(hours)} resolved incidents of {kind}s, 90 days")}


def _ranks(state: Incident) -> dict[str, Default]:
    """The ranks or workers that the analyzer of one job saw."""
    for opinion in state.opinions.values():
        if opinion.stance != "blames" or opinion.analyzer not in ("c4d", "perftracker"):
            continue
        run = runs().filter(pk=opinion.run).first()
        measures = ((None if run is None else verdict(run)) or {}).get("measures", {})
        count = measures.get("ranks") if measures.get("jobs") == 1 else measures.get("workers")
        if isinstance(count, int) and count > 0:
            return {"gpus": (float(count), f"data: ranks seen by {opinion.analyzer}")}
    return {}


def _jobs(state: Incident, region: str, now: datetime) -> dict[str, Default]:
    """The size of the job on the incident's node when it was last blamed, the time between its attempts and between its
    failures."""
    nodes = {
        name
        for name in (state.component, *state.ambiguous_with)
        if name and name.startswith(("node/", "host/"))
    }
    if not nodes:
        return {}
    judged = min(state.last_blamed or state.opened_at, now)
    sums = read_window(_ATTEMPTS, region, judged - JOBS_BEFORE, now)["attempts"]
    paths = sums.keys["nodes"]
    assert isinstance(paths, Paths)
    rows = [row for row in range(sums.rows) if nodes & set(paths[row])]
    if not rows:
        return {}
    start, end = (np.asarray(sums.keys[name], dtype=np.int64) for name in ("start", "end"))
    jobs, outcomes = (np.asarray(sums.keys[name]).tolist() for name in ("job", "outcome"))
    ran = _at(rows, start, end, round(judged.timestamp() * 1e6))
    count = len(paths[ran])
    nodes_of_job = f"{count} {'node' if count == 1 else 'nodes'} of {jobs[ran]}"
    found: dict[str, Default] = {
        "gpus": (
            count * float(settings.GPUS_PER_NODE),
            f"data: {nodes_of_job}, setting: {settings.GPUS_PER_NODE} GPUs each",
        )
    }
    failed = [row for row in rows if outcomes[row] == "failed"]
    if len(failed) >= LEAST_CRASHES:
        hours = sum(int(end[row]) - int(start[row]) for row in rows) / _HOUR
        found["crash_hours"] = (
            round(hours / len(failed), 2),
            f"data: {len(failed)} failed attempts on the node in 7 days",
        )
    by_job: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for row in range(sums.rows):
        by_job[str(jobs[row])].append((int(start[row]), int(end[row]), str(outcomes[row])))
    gaps = [
        (later[0] - before[1]) / _HOUR * 60
        for attempts in by_job.values()
        for before, later in zip(sorted(attempts), sorted(attempts)[1:], strict=False)
        if before[2] == "failed" and later[0] >= before[1]
    ]
    if len(gaps) >= LEAST_GAPS:
        found["restart_minutes"] = (round(median(gaps), 1), f"data: median of {len(gaps)} restarts in 7 days")
    return found


def _at(rows: Sequence[int], start: NDArray[np.int64], end: NDArray[np.int64], moment: int) -> int:
    """The attempt that ran at a moment (microseconds), of several the one that began last; else the last one that had
    ended by then, else the first one after it."""
    running = [row for row in rows if start[row] <= moment < end[row]]
    if running:
        return max(running, key=lambda row: int(start[row]))
    ended = [row for row in rows if end[row] <= moment]
    return max(ended, key=lambda row: int(end[row])) if ended else min(rows, key=lambda row: int(start[row]))
