"""Mitigation options of an incident of a node or a training job, with the GPU-hours that each is expected to lose.
Advice: nothing is carried out. Inputs come from the caller, else from recorded data, else from settings, and each
carries its source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean, median
from typing import Any

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from analyzers.contract import Count, Input, Paths, Reduction
from analyzers.queries import runs, verdict
from incidents.domain.incident.state import Incident
from incidents.domain.remediation.mitigation import (
    WORTH,
    Inputs,
    Option,
    Traffic,
    exposed_seconds,
    options,
    saved_share,
)
from incidents.domain.values import InvalidValueError
from incidents.incident.models import IncidentRow
from ingest.queries import read_window

Json = dict[str, Any]
HANGS = frozenset(
    {"operation not launched", "transfer without progress", "operation mismatch", "rows of the node"}
)
"""Indicators of analyzers for which the job stands still."""
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


Default = tuple[float, str]
"""A value and its source."""


@dataclass(frozen=True, slots=True)
class Field:
    """An input as forms and the API show it. `label` begins a line, `unit` ends it; bounds are inclusive."""

    name: str
    label: str
    unit: str
    low: float
    high: float


FIELDS = (
    Field("gpus", "GPUs of the job", "GPUs", 1, 1_000_000),
    Field("probability", "Probability that the component is the cause", "0 to 1", 0, 1),
    Field("slowdown", "Speed lost now", "0 to 1, 1: the job hangs", 0, 1),
    Field("repair_hours", "Time until the fault is repaired", "hours", 0, 720),
    Field("crash_hours", "Mean time until the fault ends the job", "hours, 0: never", 0, 100_000),
    Field("checkpoint_minutes", "Checkpoint interval", "minutes", 1, 10_000),
    Field("since_checkpoint_minutes", "Time since the last checkpoint", "minutes", 0, 10_000),
    Field("detect_minutes", "Time until a dead job is noticed", "minutes", 0, 10_000),
    Field("restart_minutes", "Time to restart the job", "minutes", 0, 10_000),
    Field("prepare_minutes", "Preparation of a migration", "minutes", 0, 10_000),
    Field("migrate_seconds", "Downtime of a migration", "seconds, 0: not possible", 0, 100_000),
    Field("standby_gpus", "Standby GPUs", "GPUs", 0, 100_000),
)
NETWORK = (
    Field("gigabytes", "Gradients of a worker in an iteration", "GB", 0.000001, 100_000),
    Field("iteration_seconds", "Iteration time", "seconds", 0.0001, 100_000),
    Field("overlap_seconds", "Communication hidden behind computation", "seconds", 0, 100_000),
    Field("gigabits_now", "Bandwidth between neighbours now", "Gbit/s", 0.001, 100_000),
    Field("gigabits_then", "Bandwidth with RDMA or below one switch", "Gbit/s", 0.001, 100_000),
)


@dataclass(frozen=True, slots=True)
class Value:
    """An input as it was used. `source` is `given`, or where the default comes from."""

    field: Field
    value: float | None
    source: str

    @property
    def text(self) -> str:
        return "" if self.value is None else f"{self.value:.6g}"


@dataclass(frozen=True, slots=True)
class Network:
    """Seconds of an iteration in which workers wait for the network, now and then, and the share saved."""

    now: float
    then: float
    share: float

    @property
    def helps(self) -> bool:
        return self.share >= WORTH


@dataclass(frozen=True, slots=True)
class Mitigation:
    """The inputs with their sources, the options (the cheapest first) and, where its inputs were given, the network."""

    values: tuple[Value, ...]
    options: tuple[Option, ...]
    network_values: tuple[Value, ...]
    network: Network | None

    @property
    def best(self) -> Option:
        return self.options[0]

    def as_json(self) -> Json:
        return {
            "recommended": self.best.name,
            "options": [
                {
                    "name": one.name,
                    "gpu_hours": None if one.gpu_hours is None else round(one.gpu_hours, 2),
                    "reason": one.reason or None,
                }
                for one in self.options
            ],
            "inputs": {one.field.name: {"value": one.value, "origin": one.source} for one in self.values},
            "network": None
            if self.network is None
            else {
                "exposed_seconds_now": round(self.network.now, 4),
                "exposed_seconds_then": round(self.network.then, 4),
                "saved_share": round(self.network.share, 4),
                "helps": self.network.helps,
            },
        }


def mitigation_of(state: Incident, given: Mapping[str, str], region: str, now: datetime) -> Mitigation:
    """The comparison for an incident that `can_be_mitigated`; `given` are inputs as an address or form has them, no
    empty texts. Raises InvalidValueError."""
    chosen = {
        one.name: _number(one, given[one.name])
        for one in (*FIELDS, *NETWORK)
        if given.get(one.name, "").strip()
    }
    defaults = _defaults(state) | _repair(state, now) | _ranks(state) | _jobs(state, region, now)
    return _compared(chosen, defaults)


def advice(state: Incident) -> Mitigation:
    """The comparison from the incident itself and settings alone, so that a report made again has the same."""
    return _compared({}, _defaults(state))


def _compared(chosen: Mapping[str, float], defaults: dict[str, Default]) -> Mitigation:
    if "checkpoint_minutes" in chosen:
        defaults["since_checkpoint_minutes"] = (chosen["checkpoint_minutes"] / 2, "half of the interval")
    values = tuple(
        Value(one, chosen[one.name], "given") if one.name in chosen else Value(one, *defaults[one.name])
        for one in FIELDS
    )
    inputs = Inputs(**{one.field.name: one.value for one in values})  # type: ignore[arg-type]
    if inputs.since_checkpoint_minutes > inputs.checkpoint_minutes and not inputs.hangs:
        raise InvalidValueError("since_checkpoint_minutes", "must not be longer than the checkpoint interval")
    network_values = tuple(
        Value(one, chosen.get(one.name), "given" if one.name in chosen else "") for one in NETWORK
    )
    return Mitigation(values, tuple(options(inputs)), network_values, _network(inputs.gpus, chosen))


def _number(field: Field, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not field.low <= value <= field.high:
        raise InvalidValueError(field.name, f"must be a number from {field.low:g} to {field.high:g}")
    return value


def _network(workers: float, chosen: Mapping[str, float]) -> Network | None:
    """None unless everything was given. Raises InvalidValueError where only a part was."""
    missing = [one.name for one in NETWORK if one.name not in chosen and one.name != "overlap_seconds"]
    if missing:
        if len(missing) < len(NETWORK) - 1 or "overlap_seconds" in chosen:
            raise InvalidValueError(missing[0], "is required with the other inputs of the network")
        return None
    traffic = Traffic(
        workers, chosen["gigabytes"], chosen["iteration_seconds"], chosen.get("overlap_seconds", 0.0)
    )
    now, then = chosen["gigabits_now"], chosen["gigabits_then"]
    return Network(
        exposed_seconds(traffic, now), exposed_seconds(traffic, then), saved_share(traffic, now, then)
    )


# Defaults
# ----------------------------------------------------------------------------------------------------------


def _defaults(state: Incident) -> dict[str, Default]:
    per_node = float(settings.GPUS_PER_NODE)
    checkpoint = settings.CHECKPOINT_INTERVAL.total_seconds() / 60
    hangs = any(one.stance == "blames" and one.indicator in HANGS for one in state.opinions.values())
    found: dict[str, Default] = {
        "gpus": (per_node, "setting: GPUs of one node"),
        "probability": (0.5, "assumed"),
        "slowdown": (1.0, "data: indicator of a job that stands still") if hangs else (0.1, "assumed"),
        "repair_hours": (4.0, "assumed"),
        "crash_hours": (24.0, "assumed"),
        "checkpoint_minutes": (checkpoint, "setting"),
        "since_checkpoint_minutes": (checkpoint / 2, "half of the interval"),
        "detect_minutes": (10.0, "assumed"),
        "restart_minutes": (settings.JOB_RESTART_TIME.total_seconds() / 60, "setting"),
        "prepare_minutes": (5.0, "assumed"),
        "migrate_seconds": (
            settings.JOB_MIGRATION_TIME.total_seconds(),
            "setting; 20 s is published for TrainMover at 1,024 GPUs",
        ),
        "standby_gpus": (per_node, "setting: GPUs of one node"),
    }
    if state.confidence is not None:
        found["probability"] = (round(state.confidence, 3), "data: confidence of the incident")
    return found


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
    found: dict[str, Default] = {
        "gpus": (
            count * float(settings.GPUS_PER_NODE),
            f"data: {count} nodes of {jobs[ran]}, setting: {settings.GPUS_PER_NODE} GPUs each",
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
