"""Declaration of `colocation`: inputs, parameters and version. The method is imported by its first run."""

from __future__ import annotations

from analyzers.builtin.reductions import UPTIMES
from analyzers.contract import Analyzer, Deferred, Input, Param

PARAMS = (
    Param(
        "stratum_hours",
        24.0,
        "near and far are compared within periods of this length, so that a bad day causes no bias",
        low=0.1,
        high=8784,
    ),
)

ANALYZER = Analyzer(
    name="colocation",
    version="1.2.0",
    title="Failure rate of far against near placement, with its confidence interval",
    inputs=(Input("uptime", (UPTIMES,)),),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.colocation.analysis:analyze"),
)
