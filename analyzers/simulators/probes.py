"""Scenarios of probes over a fabric, as telemetry rows: half an hour in windows of five minutes."""

from __future__ import annotations

from typing import Any

import numpy as np

from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.fabric import CLASSES, Losses, Shape, build
from analyzers.simulators.region import Row, stamp
from analyzers.simulators.truth import happened
from analyzers.simulators.voting import (
    Fault,
    Load,
    Traffic,
    benign_traffic,
    draw_fault,
    draw_traffic,
    misnamed,
    run,
)

SHAPE = Shape(pods=2, tors=6, t1s=4, t2s=4, hosts=10)
"""120 hosts, 464 directed links; 14,400 flows in all, files that open in an editor."""

LOAD = Load(flows=20, seconds=300.0)
NOISE = 1e-6
WINDOWS = 6
FAULTY = 2
"""The links fail in the last ten minutes."""


def link_scenario(
    name: str, seed: int, bad: int, event: str = ""
) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    """`probe` rows, and the truth, with `bad` links that lose 0.4 to 4 % of their packets; the event, too, is in the
    last ten minutes.
    """
    rng = np.random.default_rng(seed)
    fabric = build(SHAPE)
    fault = draw_fault(fabric, rng, bad, 4e-3, 4e-2) if bad else Fault()
    rows: list[Row] = []
    for number in range(WINDOWS):
        late = number >= WINDOWS - FAULTY
        if late and event:
            traffic = benign_traffic(fabric, np.random.default_rng(seed), event, LOAD)[0]
        else:
            traffic = draw_traffic(fabric, rng, LOAD)
        losses = run(traffic, rng, NOISE, fault if late else Fault())
        reported = misnamed(traffic, rng) if late and event == "stale_topology" else traffic
        rows += probe_rows(reported, losses, number * LOAD.seconds / 60)
    start, end = ((WINDOWS - FAULTY) * LOAD.seconds / 60, WINDOWS * LOAD.seconds / 60)
    faults = [
        {
            "component": fabric.links[link],
            "kind": "lossy_link",
            "class": CLASSES[fabric.link_class[link]],
            "severity": round(rate, 6),
            "start": stamp(EPOCH, start),
            "end": stamp(EPOCH, end),
        }
        for link, rate in zip(fault.links.tolist(), fault.rates.tolist(), strict=True)
    ]
    truth = {
        "scenario": name,
        "seed": seed,
        "start": stamp(EPOCH, 0),
        "end": stamp(EPOCH, end),
        "faults": faults,
        "benign": happened(event, stamp(EPOCH, start), stamp(EPOCH, end)),
    }
    return {"probe": rows}, truth


def probe_rows(traffic: Traffic, losses: Losses, minute: float) -> list[Row]:
    """A row a flow, in order of time; the window begins at `minute` of the scenario."""
    devices, links = traffic.fabric.devices, traffic.fabric.links
    return [
        {
            "time": stamp(EPOCH, minute + float(traffic.time[flow]) / 60),
            "src": devices[traffic.src[flow]],
            "dst": devices[traffic.dst[flow]],
            "sent": int(traffic.sent[flow]),
            "lost": int(losses.lost[flow]),
            "hops": [links[link] for link in traffic.routes[flow]],
        }
        for flow in np.argsort(traffic.time, kind="stable").tolist()
    ]
