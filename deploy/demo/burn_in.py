"""The burn-in of the training job's repaired node: benchmarks of the node and of its neighbours. Pure.

What the benchmarks measure depends on the card alone: the slow one takes `SLOWER` times as long, before and after the
return of the node, unless it was replaced.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np

from analyzers.simulators.node_benchmarks import METRICS, Defect, Preset, build, results
from deploy.demo.training_job import NODES, RAILS, REGION, SLOWER, Training, node

Row = dict[str, Any]
PEERS = 7
OF_A_CARD = tuple(m for m, metric in enumerate(METRICS) if metric.benchmark in ("nccl-bw", "ib-loopback"))
SLOW, GOOD = (Defect(0, OF_A_CARD, 1 - 1 / times) for times in (SLOWER, 1.0))


class BurnIn:
    """Rounds of one run of each benchmark on the culprit's node and `PEERS` neighbours."""

    def __init__(self, training: Training) -> None:
        first = training.rank // RAILS
        self.seed = training.seed
        self.nodes = [node(RAILS * ((first + n) % NODES)) for n in range(1 + PEERS)]
        self.fleet = build(Preset(nodes=1 + PEERS, runs=1), np.random.default_rng([self.seed, 517]))

    def rows(self, number: int, at: datetime, *, replaced: bool) -> list[Row]:
        """`benchmark` rows of round `number`, run at `at`; `replaced`: whether the slow card is out."""
        rng = np.random.default_rng([self.seed, 518, number])
        measured = results(self.fleet, rng, (GOOD if replaced else SLOW,))
        return [
            {
                "time": at.isoformat(),
                "region": REGION,
                "node": name,
                "benchmark": metric.benchmark,
                "metric": metric.name,
                "values": measured[n, m].tolist(),
            }
            for n, name in enumerate(self.nodes)
            for m, metric in enumerate(METRICS)
        ]
