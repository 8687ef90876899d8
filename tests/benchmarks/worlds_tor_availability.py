"""`tor_availability` on a year of outages that shares no code with its simulator, beside three rules of thumb.

python -m tests.benchmarks.worlds_tor_availability [--trials N] [--first SEED]

A trial is one world of each case, of twelve months; nothing was tuned on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from analyzers.builtin.paths import texts, whole
from analyzers.contract import Window
from tests.benchmarks.script import script
from tests.benchmarks.worlds import Job, figures, judge, reliability
from tests.worlds.tor_availability import CASES

Row = dict[str, Any]

FIRST = 1000
CLASS = "device_class/tor"
REQUIRED = 1e-6
"""Share that may be lost: the default target of five nines, and one more."""
BARS = MappingProxyType(
    {
        "healthy false blames a window": "<= 0.05",
        "maintenance false blames a window": "<= 0.05",
        "class_misses recall": ">= 0.9",
        "class_misses precision": ">= 0.95",
        "lemon_in_noise recall": ">= 0.9",
        "lemon_in_noise precision": ">= 0.9",
    }
)


def lost(window: Window) -> tuple[dict[str, float], dict[str, int], int]:
    """Unplanned minutes and outages of each ToR, clipped to the window; and how many ToRs are known."""
    sums = window.sums["outages"]
    low, high = window.start.timestamp() * 1e6, window.end.timestamp() * 1e6
    minutes: dict[str, float] = {}
    times: dict[str, int] = {}
    columns = (texts(sums, "device"), *(whole(sums, name) for name in ("start", "end", "planned")))
    for device, start, end, planned in zip(*columns, strict=True):
        name = str(device)
        spent = (min(float(end), high) - max(float(start), low)) / 6e7
        if name.startswith("tor/") and not planned and spent > 0:
            minutes[name], times[name] = minutes.get(name, 0.0) + spent, times.get(name, 0) + 1
    fleet = window.sums.get("fleet")
    known = set(texts(fleet, "component")) if fleet is not None else set()
    return minutes, times, len({*minutes, *(name for name in known if name.startswith("tor/"))})


def _misses(minutes: Mapping[str, float], devices: int, window: Window) -> bool:
    return sum(minutes.values()) > REQUIRED * devices * window.length.total_seconds() / 60


def most_lost(window: Window) -> Sequence[str]:
    """The device that lost most, where the class misses."""
    minutes, _, devices = lost(window)
    return [max(minutes, key=lambda name: (minutes[name], name))] if _misses(minutes, devices, window) else []


def always_class(window: Window) -> Sequence[str]:
    """The class, where it misses."""
    minutes, _, devices = lost(window)
    return [CLASS] if _misses(minutes, devices, window) else []


def three_sigma(window: Window) -> Sequence[str]:
    """Devices with more outages than mean and three standard deviations, twice at least; the class, where none has."""
    minutes, times, devices = lost(window)
    if not _misses(minutes, devices, window):
        return []
    each = np.zeros(max(devices, len(times)))
    each[: len(times)] = list(times.values())
    often = [name for name, many in times.items() if many >= 2 and many > each.mean() + 3 * each.std()]
    return often or [CLASS]


BASELINES: Mapping[str, Callable[[Window], Sequence[str]]] = MappingProxyType(
    {"most lost": most_lost, "always the class": always_class, "three sigma": three_sigma}
)


def rows(trials: int, first: int) -> Iterator[Row]:
    jobs = [
        Job(
            "tor_availability",
            case,
            first + n,
            "analyzers.builtin.tor_availability:ANALYZER",
            "tests.benchmarks.worlds_tor_availability:BASELINES",
        )
        for case in CASES
        for n in range(trials)
    ]
    judged = judge(jobs)
    yield from figures("tor_availability", judged, BARS)
    stated = [pair for one in judged.values() for pair in one.stated]
    yield from reliability("tor_availability", stated, of="tor_availability")


def main(trials: int = 9, first: int = FIRST) -> list[Row]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, 9, FIRST)
