"""Outages and uptimes written by hand, as windows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from analyzers.contract import STILL_GOING, Window
from analyzers.simulators.outages import START, micro
from analyzers.simulators.tables import rows_as_sums

DAYS = 30

Outage = tuple[str, float, float | None, str]
Uptime = tuple[str, float, float, str, str, str]


def outage_sums(outages: Sequence[Outage], planned: Sequence[Outage] = ()) -> Any:
    rows = [*((*one, 0) for one in outages), *((*one, 1) for one in planned)]
    return rows_as_sums(
        {
            "device": [row[0] for row in rows],
            "start": np.array([micro(row[1]) for row in rows], dtype=np.int64),
            "end": np.array(
                [STILL_GOING if row[2] is None else micro(row[2]) for row in rows], dtype=np.int64
            ),
            "cause": [row[3] for row in rows],
            "planned": np.array([row[4] for row in rows], dtype=np.int64),
        }
    )


def uptime_sums(rows: Sequence[Uptime]) -> Any:
    columns = list(zip(*rows, strict=True)) or [()] * 6
    return rows_as_sums(
        {
            "unit": list(columns[0]),
            "start": np.array([micro(at) for at in columns[1]], dtype=np.int64),
            "end": np.array([micro(at) for at in columns[2]], dtype=np.int64),
            "state": list(columns[3]),
            "cause": list(columns[4]),
            "hops_class": list(columns[5]),
        }
    )


def fleet_sums(labels: dict[str, str]) -> Any:
    return rows_as_sums({"component": list(labels), "labels": list(labels.values())})


def window_of(days: float = DAYS, **sums: Any) -> Window:
    """A window of so many days from the simulators' start."""
    return Window(START, START + timedelta(days=days), "north", "by hand", sums)
