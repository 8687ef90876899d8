"""The demo's probes: flows over the fabric of one pod, in which a link begins to lose packets. Pure."""

from __future__ import annotations

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


class Network:
    """Probes of each minute from `start` on; the same seed and start give the same rows."""

    def __init__(self, start: datetime, seed: int) -> None:
        self.start, self.seed = start, seed
        self.fabric = build(leaf_spine(8, 4, 4))
        self.fault = draw_fault(self.fabric, np.random.default_rng(seed), 1, LOSS, LOSS)

    @property
    def culprit(self) -> str:
        return self.fabric.links[int(self.fault.links[0])]

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
