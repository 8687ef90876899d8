"""Declaration of `netbouncer`: inputs, parameters and version. The method is imported by its first run."""

from __future__ import annotations

from analyzers.builtin.reductions import over_time
from analyzers.contract import Analyzer, Deferred, Input, Param, Reduction, Sum

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
    version="1.4.1",
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
            "largest probability by chance of a blamed link's losses; larger next to other blamed links",
            low=1e-12,
            high=0.1,
        ),
        Param("layer", "underlay", "layer of the probes to read", choices=("underlay", "overlay")),
    ),
    analyze=Deferred("analyzers.builtin.netbouncer.analysis:analyze"),
)
