"""Small windows for Deepview, written by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from analyzers.builtin.deepview import ANALYZER
from analyzers.contract import Window
from analyzers.runner import judge
from analyzers.simulators.deepview import (
    CLUMPED,
    Background,
    Fault,
    background,
    strike,
    with_history,
)
from analyzers.simulators.fleet import Fleet, Preset, build
from analyzers.simulators.tables import sums_of

START = datetime(2026, 1, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)
SMALL = Preset(datacentres=2, clusters=3, tors=4, storage=3, units=30.0, hosts=20)

Sets = Sequence[tuple[str, ...]]


def window_of(
    placed: Mapping[tuple[str, ...], int],
    failing: Mapping[tuple[str, ...], int],
    input_name: str = "placement",
    unmatched: int = 0,
    history: Sequence[Window] = (),
) -> Window:
    """A window from units per path, and failures per path (with a host among the components, or not)."""
    bare: dict[tuple[str, ...], int] = {}
    for members, failures in failing.items():
        path = tuple(name for name in members if not name.startswith("host/"))
        bare[path] = bare.get(path, 0) + failures
    sums = {
        "paths": sums_of(list(placed), {"attempts": list(placed.values())}),
        "failing": replace(sums_of(list(failing), {"failures": list(failing.values())}), unmatched=unmatched),
        "over_time": sums_of(list(bare), {"failures": list(bare.values())}, slices=[3] * len(bare)),
    }
    return Window(START, START + HOUR, "north", input_name, sums, tuple(history))


def grid(units: int = 100, rows: int = 4, columns: int = 4) -> dict[tuple[str, ...], int]:
    return {
        (f"compute_cluster/c{i}", f"storage_cluster/s{j}"): units for i in range(rows) for j in range(columns)
    }


def verdict_on(window: Window, **params: object) -> dict[str, Any]:
    return judge(ANALYZER, window, params)


def fleet_of(seed: int, preset: Preset = SMALL) -> Fleet:
    return build(preset, np.random.default_rng(seed))


def struck(
    seed: int, *faults: Fault, kind: Background = CLUMPED, hosts: bool = True, past: int = 12
) -> Window:
    """An hour of a small region with faults, after twelve healthy hours."""
    rng = np.random.default_rng([seed, 1])
    fleet = fleet_of(seed)
    failures = background(fleet, rng, kind, 0, 780).plus(*(strike(fleet, rng, fault) for fault in faults))
    return with_history(fleet, failures, 780, past=past, hosts=hosts)


def fault(component: str, severity: float, shape: str = "steady") -> Fault:
    return Fault(component, severity, 720, 780, shape)
