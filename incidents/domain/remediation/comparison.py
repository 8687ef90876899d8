"""Comparison of mitigation options from typed inputs, each with its source; the same on pages, in the API, in reports
and by the command `mitigation`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

Json = dict[str, Any]

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


def assumed(
    gpus_per_node: float = 8,
    checkpoint_minutes: float = 60,
    restart_minutes: float = 15,
    migrate_seconds: float = 20,
) -> dict[str, Default]:
    """Defaults of all inputs where nothing is recorded. The downtime of a migration is the one that TrainMover
    publishes for 1,024 GPUs."""
    values = {
        "gpus": gpus_per_node,
        "probability": 0.5,
        "slowdown": 0.1,
        "repair_hours": 4.0,
        "crash_hours": 24.0,
        "checkpoint_minutes": checkpoint_minutes,
        "since_checkpoint_minutes": checkpoint_minutes / 2,
        "detect_minutes": 10.0,
        "restart_minutes": restart_minutes,
        "prepare_minutes": 5.0,
        "migrate_seconds": migrate_seconds,
        "standby_gpus": gpus_per_node,
    }
    return {
        **{name: (value, "assumed") for name, value in values.items()},
        "since_checkpoint_minutes": (checkpoint_minutes / 2, "half of the interval"),
    }


def compared(given: Mapping[str, str], defaults: Mapping[str, Default]) -> Mitigation:
    """The comparison; `given` are inputs as an address, a form or a command line has them, `defaults` has each of
    `FIELDS`. Raises InvalidValueError."""
    chosen = {
        one.name: _number(one, given[one.name])
        for one in (*FIELDS, *NETWORK)
        if given.get(one.name, "").strip()
    }
    defaults = dict(defaults)
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
