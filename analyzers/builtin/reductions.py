"""Reductions that several analyzers declare. Without numpy: a list of analyzers loads no numeric library."""

from __future__ import annotations

from datetime import timedelta

from analyzers.contract import INVENTORY, Count, Param, Reduction, Sum

UPTIMES = Reduction(
    "uptimes",
    kind="uptime",
    group_by=("unit", "start", "end", "state", "cause", "hops_class"),
    aggregates={"rows": Count()},
)


OUTAGES = Reduction(
    "outages",
    kind="outage",
    group_by=("device", "start", "end", "cause", "planned"),
    aggregates={"rows": Count()},
)


FLEET = Reduction(
    INVENTORY, kind="topology", group_by=("component", "labels"), aggregates={"rows": Count()}, or_within=True
)
"""Devices that exist, whether or not one was ever out."""


OPEN_HOURS = Param(
    "open_hours",
    24.0,
    "an outage without an end is doubted if it began longer ago than this; 0: all are, 9000: none",
    low=0,
    high=9000,
)


def metric_series(slice: timedelta) -> Reduction:
    """Every series of metrics as total and count of its samples in slices."""
    return Reduction(
        "series",
        kind="metric",
        group_by=("name", "labels"),
        aggregates={"total": Sum("value"), "samples": Count()},
        slice=slice,
    )


SLICE = timedelta(seconds=30)


def over_time(kind: str, *group_by: str, failures: str) -> Reduction:
    """Reduction of failures on each path by time, for `spans`; one of `group_by` holds the paths."""
    return Reduction("over_time", kind, group_by, {"failures": Sum(failures)}, slice=SLICE, where=failures)
