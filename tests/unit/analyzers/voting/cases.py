"""Small windows for voting, cut from simulated fabrics or written by hand."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from analyzers.builtin.voting import ANALYZER
from analyzers.contract import Sums, Window
from analyzers.runner import judge
from analyzers.simulators.fabric import Shape, build
from analyzers.simulators.tables import paths_of
from analyzers.simulators.voting import Cut, Fault, Load, cut, draw_fault, draw_traffic, run
from analyzers.testing import Case

START = datetime(2026, 1, 5, tzinfo=UTC)
FABRIC = build(Shape(pods=2, tors=4, t1s=3, t2s=3, hosts=3))
LOAD = Load(flows=25)

Row = tuple[Sequence[str], str, str, int, int]
"""Hops, source, destination, packets sent and lost."""


def simulated(seed: int, bad: int = 1, noise: float = 1e-6, low: float = 1e-2, high: float = 5e-2) -> Cut:
    """A window of 24 hosts with `bad` bad links."""
    rng = np.random.default_rng([seed, 5])
    traffic = draw_traffic(FABRIC, rng, LOAD)
    fault = draw_fault(FABRIC, rng, bad, low, high) if bad else Fault()
    return cut(traffic, run(traffic, rng, noise, fault), fault)


def case(seed: int, faulty: bool) -> Case:
    made = simulated(seed, 2 if faulty else 0)
    return Case(made.window, made.bad)


def window_of(rows: Sequence[Row], layer: str = "underlay", length: float = 60.0) -> Window:
    """A window of probes, one flow a row, all in its first half minute."""
    grouped: dict[tuple[str, ...], list[int]] = {}
    for hops, _, _, sent, lost in rows:
        both = grouped.setdefault(tuple(sorted(hops)), [0, 0])
        both[0], both[1] = both[0] + sent, both[1] + lost
    keyed = sorted(grouped)
    flows = sorted((tuple(sorted(hops)), src, dst, sent, lost) for hops, src, dst, sent, lost in rows if lost)
    paths = Sums(
        {"hops": paths_of(keyed), "layer": (layer,) * len(keyed)},
        {name: np.array([grouped[key][i] for key in keyed]) for i, name in enumerate(("sent", "lost"))},
        len(keyed),
    )
    failing = Sums(
        {
            "hops": paths_of([flow[0] for flow in flows]),
            "src": tuple(flow[1] for flow in flows),
            "dst": tuple(flow[2] for flow in flows),
            "layer": (layer,) * len(flows),
            "slice": np.zeros(len(flows), dtype=np.int64),
        },
        {
            "flows": np.ones(len(flows), dtype=np.int64),
            "sent": np.array([flow[3] for flow in flows], dtype=np.int64),
            "lost": np.array([flow[4] for flow in flows], dtype=np.int64),
        },
        len(flows),
    )
    sums = {"paths": paths, "failing": failing}
    return Window(START, START + timedelta(seconds=length), "north", "probe", sums)


def verdict_on(window: Window, **params: object) -> dict[str, Any]:
    return judge(ANALYZER, window, params)


def star(bad: str = "", lost: int = 5, size: int = 4) -> list[Row]:
    """Hosts `host/1..size` talk to each other over one link up and one down each; flows over `bad` lose packets."""
    rows: list[Row] = []
    for a in range(1, size + 1):
        for b in range(1, size + 1):
            if a != b:
                hops = [f"link/h{a}~sw", f"link/sw~h{b}"]
                rows.append((hops, f"host/{a}", f"host/{b}", 100, lost if bad in hops else 0))
    return rows
