"""Reductions of uptime, outage and topology rows, and the parameter for outages without an end."""

from __future__ import annotations

from analyzers.contract import INVENTORY, Count, Param, Reduction

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
