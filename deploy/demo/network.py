"""The demo's probes: flows over the fabric of one pod, in which a link begins to lose packets, and the network change
before it: a spine switch is drained, and one rack goes on sending over it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from analyzers.simulators.fabric import build, leaf_spine
from analyzers.simulators.region import stamp
from analyzers.simulators.voting import Fault, Load, draw_fault, draw_traffic, run

Row = dict[str, Any]
LOAD = Load(flows=6, packets=100, seconds=60.0)
NOISE = 1e-6
SINCE, UNTIL = 165, 225
"""Minutes of the demo in which the link loses packets."""
LOSS = 0.03
CHANGED = SINCE - 5
"""Minute of the change."""
SPECIFICATION = """zone others = {others}
any(. others .) on . {spine} .
"""


@dataclass(frozen=True, slots=True)
class Drain:
    """The texts that `POST /api/v1/changes/{id}/validation` takes, with a summary."""

    summary: str
    before: str
    after: str
    specification: str


class Network:
    """Probes of each minute from `start` on; the same seed and start give the same rows."""

    def __init__(self, start: datetime, seed: int) -> None:
        self.start, self.seed = start, seed
        self.fabric = build(leaf_spine(8, 4, 4))
        self.fault = draw_fault(self.fabric, np.random.default_rng(seed), 1, LOSS, LOSS)

    @property
    def culprit(self) -> str:
        return self.fabric.links[int(self.fault.links[0])]

    def drain(self) -> Drain:
        """The spine of the culprit is drained for new optics; the rack of the culprit keeps its routes."""
        ends = self.culprit.partition("/")[2].split("~")
        spines = [name for name in self.fabric.devices if name.startswith("t1/")]
        racks = [name for name in self.fabric.devices if name.startswith("tor/")]
        (spine,) = (name for name in spines if name.partition("/")[2] in ends)
        (undrained,) = (name for name in racks if name.partition("/")[2] in ends)
        lines = [("class,path\n", True)]
        for rack in racks:
            for other in (name for name in racks if name != rack):
                names = f"{rack.partition('/')[2]}-{other.partition('/')[2]}"
                lines += [
                    (f"{names},{rack} {way} {other}\n", way != spine or rack == undrained) for way in spines
                ]
        return Drain(
            f"Drained {spine} for new optics",
            "".join(line for line, _ in lines),
            "".join(line for line, stays in lines if stays),
            SPECIFICATION.format(others=" ".join(name for name in spines if name != spine), spine=spine),
        )

    def minute(self, number: int) -> list[Row]:
        rng = np.random.default_rng([self.seed, number])
        traffic = draw_traffic(self.fabric, rng, LOAD)
        losses = run(traffic, rng, NOISE, self.fault if SINCE <= number < UNTIL else Fault())
        devices, links = self.fabric.devices, self.fabric.links
        return [
            {
                "time": stamp(self.start, number + float(traffic.time[flow]) / 60),
                "src": devices[traffic.src[flow]],
                "dst": devices[traffic.dst[flow]],
                "sent": int(traffic.sent[flow]),
                "lost": int(losses.lost[flow]),
                "hops": [links[link] for link in traffic.routes[flow]],
            }
            for flow in np.argsort(traffic.time, kind="stable").tolist()
        ]
