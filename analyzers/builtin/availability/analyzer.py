"""Declaration of `availability`: inputs, parameters and version. The method is imported by its first run."""

from __future__ import annotations

from analyzers.builtin.reductions import FLEET, OPEN_HOURS, OUTAGES, UPTIMES
from analyzers.contract import Analyzer, Deferred, Input, Param

PARAMS = (
    Param("target_nines", 3.0, "nines that every component should have", low=0, high=9),
    Param("most", 20, "largest number of components named, worst first", low=1, high=1000),
    OPEN_HOURS,
)

ANALYZER = Analyzer(
    name="availability",
    version="1.5.0",
    title="Uptime, downtime by cause and nines of every component, and components below target",
    inputs=(
        Input("all", (UPTIMES, OUTAGES, FLEET)),
        Input("uptime_and_topology", (UPTIMES, FLEET)),
        Input("outage_and_topology", (OUTAGES, FLEET)),
        Input("uptime_and_outage", (UPTIMES, OUTAGES)),
        Input("uptime", (UPTIMES,)),
        Input("outage", (OUTAGES,)),
    ),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.availability.analysis:analyze"),
)
