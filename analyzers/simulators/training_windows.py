"""Windows of a simulated training job, as the reduction of `straggler` would sum its rows."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import numpy as np

from analyzers.contract import Sums, Window
from analyzers.simulators.training import EPOCH, ITERATION, LENGTH, METRICS, Run

SLICE = 10


def window_of(made: Run, end: float | None = None, past: int = 3, length: timedelta = LENGTH) -> Window:
    """The window that ends at second `end` (that of the run), with up to `past` windows before it."""
    size = length.total_seconds()
    last = made.preset.seconds if end is None else end
    before = min(past, int((last - size) // size))
    windows = [_one(made, last - (back + 1) * size, size) for back in range(before, -1, -1)]
    now = windows[-1]
    return Window(now.start, now.end, now.region, now.input, now.sums, tuple(windows[:-1]))


def _one(made: Run, start: float, size: float) -> Window:
    begin = EPOCH + timedelta(seconds=start)
    return Window(
        begin, begin + timedelta(seconds=size), "simulated", "metric", {"series": _sums(made, start, size)}
    )


def _sums(made: Run, start: float, size: float) -> Sums:
    names: list[str] = []
    labels: list[str] = []
    slices: list[int] = []
    total: list[float] = []
    samples: list[int] = []
    time = np.arange(0.0, made.preset.seconds, made.preset.step)
    shift = made.shift if len(made.shift) else np.zeros(made.preset.nodes)
    columns = int(-(-size // SLICE))
    texts = [_text({"job": "llm-70b", "node": made.name(node)}) for node in range(made.preset.nodes)]
    found = [
        (name, texts[node], time + shift[node], made.values[name][node])
        for name in METRICS
        for node in range(made.preset.nodes)
    ]
    if made.preset.paced:
        found.append((ITERATION, _text({"job": "llm-70b"}), made.ended, made.took))
    for name, label, when, values in sorted(found, key=lambda one: (one[0], one[1])):
        retained = (when >= start) & (when < min(start + size, made.preset.seconds)) & np.isfinite(values)
        at = ((when[retained] - start) // SLICE).astype(np.int64)
        count = np.bincount(at, minlength=columns)
        sums = np.bincount(at, values[retained], minlength=columns)
        there = np.flatnonzero(count)
        names += [name] * len(there)
        labels += [label] * len(there)
        slices += there.tolist()
        total += sums[there].tolist()
        samples += count[there].tolist()
    keys: dict[str, Any] = {
        "name": tuple(names),
        "labels": tuple(labels),
        "slice": np.array(slices, dtype=np.int64),
    }
    return Sums(
        keys,
        {"total": np.array(total, dtype=np.float64), "samples": np.array(samples, dtype=np.int64)},
        len(names),
    )


def _text(labels: dict[str, str]) -> str:
    """Labels as canonical JSON, the way the telemetry store has them."""
    return json.dumps(labels, separators=(",", ":"), sort_keys=True)
