"""The demo's training job: 512 GPUs on 64 nodes of 8, of which one network card becomes slow. Pure.

One job seen by three recorders: collectives of the data-parallel groups, one on each rail (C4D), probes between
neighbours of these rings (SkeletonHunter) and profiles of all workers (PerfTracker). Rank, worker, card and endpoint
of one number are on rail number modulo 8. Recorders work for a part of the time, as in a fleet: collectives are
recorded in the minutes `RECORDED` and after the return of the node, a profile is made now and then.

The job stands still from the drain of the node until its return, and then goes on for `LEFT` minutes, with the card
that is in the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np

from analyzers.simulators import profiles
from analyzers.simulators.collectives.jobs import Job, Trouble
from analyzers.simulators.collectives.rows import collective_rows, recorded
from analyzers.simulators.region import stamp

Row = dict[str, Any]
JOB, REGION = "llm-70b", "gpu"
NODES, RAILS, SEGMENT, SPINES = 64, 8, 16, 4
RANKS = NODES * RAILS
SINCE, UNTIL = 182, 196
"""Minutes of the demo in which the card is slow: until its node is drained."""
PROBED = range(150, UNTIL)
RECORDED = range(180, 188)
PROFILED = (152, 162, 172, 183, 188)
LEFT = 20
"""Minutes that the job still takes after the return of the node."""
RECORDED_AFTER = range(6)
PROFILED_AFTER = (1, 7, 13)
"""Minutes after the return."""
SLOWER, DELAY, COST = 2.5, 40.0, 0.2
"""Transfers take so many times as long, answers so many microseconds more, and an iteration such a share more."""
EVERY, PROBES = 30.0, 10
"""Seconds between rows of a pair, and probes in each."""
SHAPE = Job(tensor=RAILS, data=NODES, rings=1, micro_batches=1, compute=2.6, gradient_bytes=4e10)
PROFILE = profiles.Preset(workers=RANKS, stages=1, minor=0)


class Training:
    """Rows of each minute from `start` on; the same seed and start give the same rows."""

    def __init__(self, start: datetime, seed: int) -> None:
        self.start, self.seed = start, seed
        self.rank = int(np.random.default_rng([seed, 512]).integers(RAILS, RANKS))
        rng = np.random.default_rng([seed, 513])
        self.base = rng.uniform(12, 18, (RANKS, 2))
        self.sigma = rng.uniform(0.05, 0.1, (RANKS, 2))
        self.back: int | None = None
        """Minute in which the job goes on; None while its node is away."""
        self.replaced = False
        self._recorded: dict[int, Mapping[int, list[Row]]] = {}

    def go_on(self, minute: int, *, replaced: bool) -> None:
        """The node is back before `minute`; `replaced`: whether the slow card is out."""
        self.replaced = replaced  # first: another thread asks for rows once `back` is there
        self.back = minute

    def runs(self, number: int) -> bool:
        """Whether the job runs in a minute."""
        return number in PROBED or (self.back is not None and 0 <= number - self.back < LEFT)

    @property
    def culprit(self) -> str:
        return nic(self.rank)

    @property
    def also_named(self) -> tuple[str, ...]:
        """Parts of the job that rest on the culprit: other names of one fault."""
        return f"rank/{self.rank}", f"worker/{self.rank}", node(self.rank)

    def topology(self) -> list[Row]:
        time = stamp(self.start, 0)
        rows = [component(time, "node", node(RAILS * number)) for number in range(NODES)]
        for rank in range(RANKS):
            rows.append(component(time, "nic", nic(rank), [node(rank)]))
            rows.append(component(time, "rank", f"rank/{rank}", [node(rank)], [nic(rank)]))
            # A profile is of the rank's process: so tied, both are one incident before the card is named.
            rows.append(component(time, "worker", f"worker/{rank}", [node(rank)], [f"rank/{rank}"]))
        return rows

    def minute(self, number: int) -> Mapping[str, list[Row]]:
        """Rows by kind of one minute; none while the job does not run."""
        after = number - (number + 1 if self.back is None else self.back)
        made: dict[str, list[Row]] = {
            "endpoint": self._endpoints(number),
            "probe": self._probes(number) if self.runs(number) else [],
            "collective": self._collectives(number, after),
            "function_profile": self._profile(number)
            if number in PROFILED or after in PROFILED_AFTER
            else [],
        }
        return {kind: [{**row, "region": REGION} for row in rows] for kind, rows in made.items() if rows}

    def _slow(self, number: float) -> bool:
        is_back = self.back is not None and number >= self.back
        return SINCE <= number < UNTIL or (is_back and not self.replaced)

    def _endpoints(self, number: int) -> list[Row]:
        """All register when the job starts, and leave when it stops."""
        starts, stops = (self.runs(number) and not self.runs(number + step) for step in (-1, 1))
        if not starts and not stops:
            return []
        active = {} if starts else {"active": False}
        at = stamp(self.start, number + (0.001 if starts else 0.998))
        return [
            {
                "time": at,
                "endpoint": endpoint(rank),
                "job": JOB,
                "host": node(rank),
                "nic": nic(rank),
                "rail": rank % RAILS,
                **active,
            }
            for rank in range(RANKS)
        ]

    def _probes(self, number: int) -> list[Row]:
        """Each endpoint probes both neighbours of its ring twice a minute."""
        rng = np.random.default_rng([self.seed, 514, number])
        slow = self._slow(number)
        rows = []
        for half in range(2):
            at = number + (half * EVERY + rng.uniform(1, EVERY - 1, (RANKS, 2))) / 60
            rtt = self.base[..., None] * np.exp(
                self.sigma[..., None] * rng.standard_normal((RANKS, 2, PROBES))
            )
            late = DELAY * rng.uniform(0.7, 1.3, rtt.shape)
            for rank in range(RANKS):
                for side, peer in enumerate(((rank - RAILS) % RANKS, (rank + RAILS) % RANKS)):
                    struck = slow and self.rank in (rank, peer)
                    took = rtt[rank, side] + late[rank, side] * struck
                    rows.append(
                        {
                            "time": stamp(self.start, float(at[rank, side])),
                            "src": endpoint(rank),
                            "dst": endpoint(peer),
                            "sent": PROBES,
                            "lost": 0,
                            "rtt_us": np.round(took, 2).tolist(),
                            "hops": hops(rank, peer),
                            "layer": "overlay",
                        }
                    )
        return sorted(rows, key=lambda row: str(row["time"]))

    def _collectives(self, number: int, after: int) -> list[Row]:
        if number in RECORDED:
            return self._run(RECORDED, SINCE).get(number, [])
        if self.back is None or after not in RECORDED_AFTER:
            return []
        minutes = range(self.back, self.back + len(RECORDED_AFTER))
        return self._run(minutes, None if self.replaced else self.back).get(number, [])

    def _run(self, minutes: range, slow_since: int | None) -> Mapping[int, list[Row]]:
        """Rows by minute: one simulated run of the job in these minutes, made once."""
        if minutes.start in self._recorded:
            return self._recorded[minutes.start]
        rng = np.random.default_rng([self.seed, 515, *([] if minutes == RECORDED else [minutes.start])])
        seconds = 60.0 * len(minutes)
        faults = (
            ()
            if slow_since is None
            else (Trouble("slow_nic", (self.rank,), 60.0 * (slow_since - minutes.start), strength=SLOWER),)
        )
        columns = recorded(SHAPE, rng, seconds, faults, skew=0.05)
        across = np.char.startswith(columns["communicator"].astype(str), "dp-")
        there = across & (columns["start"] >= 0) & (columns["start"] < seconds)
        columns = {name: column[there] for name, column in columns.items()}
        columns["node"] = np.array([node(rank) for rank in columns["rank"].tolist()], dtype=object)
        began = self.start.timestamp() + 60.0 * minutes.start
        by_minute: dict[int, list[Row]] = {}
        for row in collective_rows(columns, JOB, seconds, began):
            at = int((datetime.fromisoformat(row["time"]) - self.start).total_seconds() // 60)
            by_minute.setdefault(at, []).append(row)
        self._recorded = {minutes.start: by_minute}
        return by_minute

    def _profile(self, number: int) -> list[Row]:
        rng = np.random.default_rng([self.seed, 516, number])
        faults = (profiles.Fault("slow_nic", self.rank, COST),) if self._slow(number) else ()
        made = profiles.profile(PROFILE, rng, faults)
        at = stamp(self.start, number + 0.5)
        return [{**row, "time": at, "job": JOB} for row in profiles.rows_of(made)]


def node(rank: int) -> str:
    return f"node/gpu-{rank // RAILS:04d}"


def nic(rank: int) -> str:
    return f"nic/gpu-{rank // RAILS:04d}-{rank % RAILS}"


def endpoint(rank: int) -> str:
    return f"endpoint/{JOB}-{rank}"


def hops(src: int, dst: int) -> list[str]:
    """Path of a probe between two cards of one rail: over a spine where their segments differ."""
    rail, near, far = src % RAILS, *(rank // RAILS // SEGMENT for rank in (src, dst))
    ends = [f"link/{nic(rank).partition('/')[2]}" for rank in (src, dst)]
    tors = [f"tor/gpu-s{segment}-r{rail}" for segment in dict.fromkeys((near, far))]
    spine = [] if near == far else [f"spine/gpu-r{rail}-{(src + dst) % SPINES}"]
    return [ends[0], *tors, *spine, ends[1]]


def component(
    time: str, tier: str, name: str, parents: list[str] | None = None, needs: list[str] | None = None
) -> Row:
    row: Row = {"time": time, "component": name, "labels": {"tier": tier}, "region": REGION}
    return row | ({"parents": parents} if parents else {}) | ({"depends_on": needs} if needs else {})
