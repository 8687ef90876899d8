"""Rows of the demo, as batches in order of data time. Pure: the same seed and start give the same batches.

The world is `region_world` of the simulators. After its end it goes on with what every fleet has: a few
failures an hour, and with the fault that lasts a day. An inventory that reports placements all the time, as real
ones do, makes data time pass in quiet minutes too. Beside it go the probes of a small fabric (`network`), a training
job of 512 GPUs (`training`), the month before (`month`) and the nightly validation of GPU nodes (`validation`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import numpy as np

from analyzers.simulators.deepview import background, strike
from analyzers.simulators.fleet import build
from analyzers.simulators.region import BACKGROUND, REGION, World, failure_rows, region_world, stamp
from deploy.demo.month import DAYS, Month
from deploy.demo.network import Network
from deploy.demo.training_job import Training
from deploy.demo.validation import Validation

Row = dict[str, Any]
MINUTE = timedelta(minutes=1)
HEALTHY = 60
"""Minutes before the first story; they are sent at once."""
SEED = 7
MOST_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one kind. `name` is its own for ever; `until` is the data time at which all of them have
    happened."""

    name: str
    kind: str
    rows: list[Row]
    until: datetime


@dataclass(frozen=True, slots=True)
class Story:
    """`also_named`: what rests on the components; an analyzer may name the fault by it, and be right."""

    title: str
    components: tuple[str, ...]
    also_named: tuple[str, ...] = ()


class Demo:
    """The demo world from `start` on."""

    def __init__(self, start: datetime, seed: int = SEED) -> None:
        self.start, self.seed = start, seed
        self.world: World = region_world(seed, start)
        self.fleet = build(REGION, np.random.default_rng(seed))
        self.minutes = round((self.world.end - start) / MINUTE)
        self._times = [row["time"] for row in self.world.failures]
        self._drawn: tuple[int, list[Row]] = (-1, [])
        self.network = Network(start, seed)
        tors = sorted(name for name in self.fleet.components if name.startswith("tor/"))
        self.month = Month(start, tors, seed)
        self.validation = Validation(start, seed)
        self.training = Training(start, seed)

    @property
    def stories(self) -> list[Story]:
        chapters = self.world.truth["stories"]
        return [
            Story("Two ToRs with bad firmware reboot almost daily, for a month", self.month.culprits),
            Story(
                "A GPU node is 10 % slower in one benchmark of the nightly round", (self.validation.culprit,)
            ),
            *(Story(s["title"], tuple(fault["component"] for fault in s["faults"])) for s in chapters),
            Story("A link between two switches loses 3 % of its packets", (self.network.culprit,)),
            Story(
                "A network card slows a training job of 512 GPUs; three analyzers see it",
                (self.training.culprit,),
                self.training.also_named,
            ),
        ]

    def inventory(self) -> list[Batch]:
        """Topology and placements, and the month before."""
        batches = []
        for kind, rows in (
            ("topology", [*self._known_before(), *self.training.topology()]),
            ("placement", self.world.placement),
            ("outage", self.month.outages()),
            ("uptime", self.month.uptimes()),
            ("benchmark", self.validation.rows()),
        ):
            for n, first in enumerate(range(0, len(rows), MOST_ROWS)):
                batches.append(Batch(f"{kind}-{n}", kind, rows[first : first + MOST_ROWS], self.start))
        return batches

    def _known_before(self) -> list[Row]:
        """Rows of the start, moved back: they were in force for the month before."""
        first, began = stamp(self.start, 0), stamp(self.start - timedelta(days=DAYS), 0)
        return [{**row, "time": began} if row["time"] == first else row for row in self.world.topology]

    def minute(self, number: int) -> list[Batch]:
        """Batches of minute `number` from the start."""
        return [*self.region_minute(number), *self.job_minute(number)]

    def job_minute(self, number: int) -> list[Batch]:
        """Records of the training job in a minute."""
        until = self.start + (number + 1) * MINUTE
        return [
            Batch(f"job-{kind}-{n}-at-{number}", kind, rows[first : first + MOST_ROWS], until)
            for kind, rows in self.training.minute(number).items()
            for n, first in enumerate(range(0, len(rows), MOST_ROWS))
        ]

    def region_minute(self, number: int) -> list[Batch]:
        """Probes, failures, if any, and one placement that is confirmed."""
        until = self.start + (number + 1) * MINUTE
        failures = self._story_rows(number) if number < self.minutes else self._afterwards(number)
        confirmed = self.world.placement[number % len(self.world.placement)]
        placement = {**confirmed, "time": stamp(self.start, number + 0.999)}
        probes = self.network.minute(number)
        batches = [
            Batch(f"placement-at-{number}", "placement", [placement], until),
            Batch(f"probe-at-{number}", "probe", probes, until),
        ]
        if failures:
            batches.insert(0, Batch(f"unit_failure-at-{number}", "unit_failure", failures, until))
        return batches

    def after(self, moment: datetime) -> Iterator[int]:
        """The minutes from the one that holds `moment` on, without end."""
        return count(max(0, int((moment - self.start) / MINUTE)))

    def _story_rows(self, number: int) -> list[Row]:
        first, last = (bisect_left(self._times, stamp(self.start, n)) for n in (number, number + 1))
        return self.world.failures[first:last]

    def _afterwards(self, number: int) -> list[Row]:
        first, last = stamp(self.start, number), stamp(self.start, number + 1)
        return [row for row in self._hour(number // 60) if first <= row["time"] < last]

    def _hour(self, hour: int) -> list[Row]:
        """The background of an hour; that of the latest one is remembered, for its minutes are asked one by one."""
        if self._drawn[0] != hour:
            rng, began = np.random.default_rng([self.seed, hour]), 60.0 * hour
            failures = background(self.fleet, rng, BACKGROUND, 0, 60)
            for fault in self.world.lasting:
                if fault.end > began:
                    goes_on = replace(fault, start=0.0, end=min(60.0, fault.end - began))
                    failures = failures.plus(strike(self.fleet, rng, goes_on))
            self._drawn = hour, failure_rows(self.fleet, failures, self.start + timedelta(hours=hour))
        return self._drawn[1]
