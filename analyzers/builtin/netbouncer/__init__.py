"""NetBouncer (Tan et al., NSDI 2019): success probabilities of links and devices from probes whose path is known.

First the devices that no clean path crosses, then the links by coordinate descent; what is flagged is fitted again by
its binomial likelihood, because the penalty that makes the descent decide also biases what it says. The prober is a
suspect like any link, and what paths lose in bursts of their own bounds what a component is believed to lose.
"""

from __future__ import annotations

from analyzers.builtin.netbouncer.analysis import analyze
from analyzers.builtin.stats.onset import over_time
from analyzers.contract import Analyzer, Input, Param, Reduction, Sum

_PROBES = Input(
    "probe",
    (
        Reduction("paths", "probe", ("layer", "hops", "src"), {"sent": Sum("sent"), "lost": Sum("lost")}),
        over_time("probe", "hops", "src", "layer", failures="lost"),
    ),
)
_OUTCOMES = Input(
    "path_outcome",
    (
        Reduction(
            "paths", "path_outcome", ("components",), {"sent": Sum("attempts"), "lost": Sum("failures")}
        ),
        over_time("path_outcome", "components", failures="failures"),
    ),
)

ANALYZER = Analyzer(
    name="netbouncer",
    version="1.4.0",
    title="Infers each link's loss from probes over known paths",
    inputs=(_PROBES, _OUTCOMES),
    params=(
        Param(
            "min_loss", 0.02, "the smallest loss of interest: sets each link's penalty", low=1e-5, high=0.5
        ),
        Param(
            "lambda", 0.0, "one penalty for all links, as published (1); 0: from min_loss", low=0.0, high=1e6
        ),
        Param(
            "alpha",
            1e-4,
            "how improbable by chance a link's losses must be for blame; beside other blamed ones less is asked",
            low=1e-12,
            high=0.1,
        ),
        Param("layer", "underlay", "which probes", choices=("underlay", "overlay")),
    ),
    analyze=analyze,
)
