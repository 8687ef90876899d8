"""The demo's training job: 512 GPUs on 64 nodes of 8, of which one network card becomes slow. Pure.

One job seen by three recorders: collectives of the data-parallel groups, one on each rail (C4D), probes between
neighbours of these rings (SkeletonHunter) and profiles of all workers (PerfTracker). Rank, worker, card and endpoint
of one number are on rail number modulo 8. Recorders work for a part of the time, as in a fleet: collectives are
recorded in the minutes `RECORDED`, a profile is made now and then.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
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
BACK = 208
"""Minute in which the job goes on, with a new card."""
PROBED = range(150, 225)
RECORDED = range(180, 188)
PROFILED = (152, 162, 172, 183, 188, 212, 220)
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

    @property
    def culprit(self) -> str:
        return nic(self.rank)

    @property
    def also_named(self) -> tuple[str, ...]:
        """What of the job rests on the culprit: other names of one fault."""
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
        made: dict[str, list[Row]] = {
            "endpoint": self._endpoints(number),
            "probe": self._probes(number) if runs(number) else [],
            "collective": self._collectives.get(number, []) if number in RECORDED else [],
            "function_profile": self._profile(number) if number in PROFILED else [],
        }
        return {kind: [{**row, "region": REGION} for row in rows] for kind, rows in made.items() if rows}

    def _slow(self, number: float) -> bool:
        return SINCE <= number < UNTIL

    def _endpoints(self, number: int) -> list[Row]:
        """All register when the job starts, and leave while it does not run."""
        if number not in (PROBED.start, UNTIL, BACK, PROBED.stop - 1):
            return []
        active = {} if runs(number) and number + 1 < PROBED.stop else {"active": False}
        at = stamp(self.start, number + (0.998 if number + 1 == PROBED.stop else 0.001))
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

    @cached_property
    def _collectives(self) -> Mapping[int, list[Row]]:
        """Rows by minute: one simulated run of the job, as far as it is recorded."""
        rng = np.random.default_rng([self.seed, 515])
        fault = Trouble("slow_nic", (self.rank,), 60.0 * (SINCE - RECORDED.start), strength=SLOWER)
        columns = recorded(SHAPE, rng, 60.0 * len(RECORDED), (fault,), skew=0.05)
        across = np.char.startswith(columns["communicator"].astype(str), "dp-")
        there = across & (columns["start"] >= 0) & (columns["start"] < 60.0 * len(RECORDED))
        columns = {name: column[there] for name, column in columns.items()}
        columns["node"] = np.array([node(rank) for rank in columns["rank"].tolist()], dtype=object)
        began = self.start.timestamp() + 60.0 * RECORDED.start
        by_minute: dict[int, list[Row]] = {}
        for row in collective_rows(columns, JOB, 60.0 * len(RECORDED), began):
            at = int((datetime.fromisoformat(row["time"]) - self.start).total_seconds() // 60)
            by_minute.setdefault(at, []).append(row)
        return by_minute

    def _profile(self, number: int) -> list[Row]:
        rng = np.random.default_rng([self.seed, 516, number])
        faults = (profiles.Fault("slow_nic", self.rank, COST),) if self._slow(number) else ()
        made = profiles.profile(PROFILE, rng, faults)
        at = stamp(self.start, number + 0.5)
        return [{**row, "time": at, "job": JOB} for row in profiles.rows_of(made)]


def runs(number: int) -> bool:
    return number in PROBED and not UNTIL <= number < BACK


def node(rank: int) -> str:
    return f"node/gpu-{rank // RAILS:04d}"


def nic(rank: int) -> str:
    return f"nic/gpu-{rank // RAILS:04d}-{rank % RAILS}"


def endpoint(rank: int) -> str:
    return f"endpoint/{JOB}-{rank}"


def hops(src: int, dst: int) -> list[str]:
    """What a probe passes between two cards of one rail: over a spine where their segments differ."""
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
