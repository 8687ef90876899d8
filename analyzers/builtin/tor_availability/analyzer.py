"""Declaration of `tor_availability`: inputs, parameters and version. The method is imported by its first run."""

from __future__ import annotations

from analyzers.builtin.reductions import FLEET, OPEN_HOURS, OUTAGES
from analyzers.contract import Analyzer, Deferred, Input, Param

PARAMS = (
    Param("window_days", 0.0, "measure the last so many days of the window; 0: all of it", low=0, high=3660),
    Param("target_nines", 5.0, "nines that the dependents promise; the class needs one more", low=0, high=9),
    Param("devices", 0, "number of devices of the class; 0: those in the rows", low=0, high=10**9),
    Param("device_class", "tor", "the kind of component that makes up the class"),
    OPEN_HOURS,
)

ANALYZER = Analyzer(
    name="tor_availability",
    version="1.3.1",
    title="Availability of a device class, such as ToRs, against the tier that depends on it",
    inputs=(Input("fleet", (OUTAGES, FLEET)), Input("outages", (OUTAGES,))),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.tor_availability.analysis:analyze"),
)
