"""What is read of outages, and of the devices that exist without ever having been out."""

from __future__ import annotations

from analyzers.contract import INVENTORY, Count, Reduction

OUTAGES = Reduction(
    "outages",
    kind="outage",
    group_by=("device", "start", "end", "cause", "planned"),
    aggregates={"rows": Count()},
)

FLEET = Reduction(
    INVENTORY, kind="topology", group_by=("component", "labels"), aggregates={"rows": Count()}, or_within=True
)
