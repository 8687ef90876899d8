"""A month of a device class: reboots, replacements, planned upgrades, and a batch with bad firmware.

Durations are log-normal around those of the talk on Deepview (Zhang et al., NetAI 2018): 20 minutes for what a
reboot mends, two hours for what has to be replaced. Truth is drawn first, then reported as inventories do: an
outage is told of when it begins and again when it ends, some are told of twice by two systems that disagree
about the start, and planned upgrades are marked.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import STILL_GOING, Sums, Window
from analyzers.simulators.tables import rows_as_sums

START = datetime(2026, 1, 5, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
GOOD, BAD = "9.4.1", "9.4.2"

Row = dict[str, Any]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Class:
    """`monthly` outages a device in 30 days, a share `soft` of them mended by a reboot.

    `batch` devices run other firmware and go out `batch_monthly` times a month instead, all soft. `upgraded` is
    the share that is taken down for a planned upgrade of a few minutes; `twice` the share of outages that
    a second system reports too, up to five minutes late; `days` the length of the record.
    """

    devices: int = 128
    monthly: float = 0.03
    soft: float = 0.9
    batch: int = 0
    batch_monthly: float = 4.0
    upgraded: float = 0.0
    twice: float = 0.0
    days: int = 30


BATCH = Class(batch=8, upgraded=0.5, twice=0.1)
HEALTHY = Class(devices=20_000, monthly=0.0005, upgraded=0.05, twice=0.1)


@dataclass(frozen=True, slots=True)
class Outage:
    """One report: minutes from the start of the record; `end` None while it lasts."""

    device: int
    start: float
    end: float | None
    cause: str
    planned: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """Reports of a class, and the devices that are truly bad."""

    shape: Class
    names: tuple[str, ...]
    bad: tuple[int, ...]
    outages: tuple[Outage, ...]

    @property
    def culprits(self) -> tuple[str, ...]:
        return tuple(self.names[device] for device in self.bad)


def draw(shape: Class, seed: int) -> Record:
    rng = np.random.default_rng(seed)
    names = tuple(f"tor/d1-c{i // 8 + 1}-t{i % 8 + 1}" for i in range(shape.devices))
    bad = tuple(sorted(rng.choice(shape.devices, shape.batch, replace=False).tolist()))
    rate = np.full(shape.devices, shape.monthly)
    rate[list(bad)] = shape.batch_monthly
    found: list[Outage] = []
    for device, times in enumerate(rng.poisson(rate * shape.days / 30).tolist()):
        soft_share = 1.0 if device in bad else shape.soft
        for _ in range(times):
            found += _reported(shape, rng, device, rng.random() < soft_share)
    for device in np.flatnonzero(rng.random(shape.devices) < shape.upgraded).tolist():
        start = float(rng.uniform(0, shape.days * 1440 - 60))
        found.append(Outage(device, start, start + float(rng.uniform(4, 12)), "upgrade", planned=True))
    found.sort(key=lambda one: (one.start, one.device))
    return Record(shape, names, bad, tuple(found))


def _reported(shape: Class, rng: np.random.Generator, device: int, soft: bool) -> list[Outage]:
    """One true outage as one report or two."""
    length = shape.days * 1440
    start = float(rng.uniform(0, length))
    typical = 20.0 if soft else 120.0
    end = start + float(rng.lognormal(np.log(typical) - 0.08, 0.4))  # the mean is `typical`
    over = end if end < length else None
    reported = [Outage(device, start, over, "soft" if soft else "hard")]
    late = float(rng.uniform(0.2, 5))
    if rng.random() < shape.twice and start + late < end and start + late < length:
        reported.append(Outage(device, start + late, over, reported[0].cause))
    return reported


def micro(minute: float) -> int:
    """Microseconds since 1970, on a whole millisecond."""
    return (START - _EPOCH) // timedelta(microseconds=1) + round(minute * 60_000) * 1000


def window_of(record: Record, with_fleet: bool = True, unknown: Collection[int] = ()) -> Window:
    """The whole record as one window, as the readers would give it; the topology knows nothing of `unknown` devices."""
    end = START + timedelta(days=record.shape.days)
    sums = {"outages": outage_sums(record)}
    if with_fleet:
        known = [device for device in range(len(record.names)) if device not in unknown]
        labels = _labels(record)
        sums["fleet"] = rows_as_sums(
            {
                "component": [record.names[device] for device in known],
                "labels": [json.dumps(labels[device], separators=(",", ":")) for device in known],
            }
        )
    return Window(START, end, "synthetic", "fleet" if with_fleet else "outages", sums)


def outage_sums(record: Record) -> Sums:
    distinct = {(one.device, micro(one.start)): one for one in record.outages}.values()
    ends = [STILL_GOING if one.end is None else micro(one.end) for one in distinct]
    return rows_as_sums(
        {
            "device": [record.names[one.device] for one in distinct],
            "start": np.array([micro(one.start) for one in distinct], dtype=np.int64),
            "end": np.array(ends, dtype=np.int64),
            "cause": [one.cause for one in distinct],
            "planned": np.array([one.planned for one in distinct], dtype=np.int64),
        }
    )


def _labels(record: Record) -> list[dict[str, str]]:
    bad = set(record.bad)
    return [{"firmware": BAD if device in bad else GOOD} for device in range(record.shape.devices)]


def outage_rows(record: Record) -> list[Row]:
    rows = []
    for one in record.outages:
        row: Row = {"device": record.names[one.device], "start": stamp(one.start)}
        if one.end is not None:
            row["end"] = stamp(one.end)
        rows.append({**row, "cause": one.cause, **({"planned": True} if one.planned else {})})
    return rows


def topology_rows(record: Record, unknown: Collection[int] = ()) -> list[Row]:
    return [
        {"time": stamp(0), "component": name, "labels": labels}
        for device, (name, labels) in enumerate(zip(record.names, _labels(record), strict=True))
        if device not in unknown
    ]


def truth(name: str, seed: int, record: Record) -> Row:
    span = {"start": stamp(0), "end": stamp(record.shape.days * 1440)}
    faults = [{"component": culprit, "kind": "bad_firmware", **span} for culprit in record.culprits]
    return {"scenario": name, "seed": seed, **span, "faults": faults}


def stamp(minute: float) -> str:
    moment = _EPOCH + timedelta(microseconds=micro(minute))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
