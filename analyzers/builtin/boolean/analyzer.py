"""Declaration of `boolean`: inputs, parameters and version. The method is imported by its first run."""

from __future__ import annotations

from analyzers.builtin.reductions import over_time
from analyzers.contract import Analyzer, Deferred, Input, Param, Reduction, Sum

INPUTS = (
    Input(
        "path_outcome",
        (
            Reduction(
                "paths",
                kind="path_outcome",
                group_by=("components",),
                aggregates={"attempts": Sum("attempts"), "failures": Sum("failures")},
            ),
            over_time("path_outcome", "components", failures="failures"),
        ),
    ),
    Input(
        "probe",
        (
            Reduction(
                "paths",
                kind="probe",
                group_by=("hops", "layer"),
                aggregates={"attempts": Sum("sent"), "failures": Sum("lost")},
            ),
            over_time("probe", "hops", "layer", failures="lost"),
        ),
    ),
)

PARAMS = (
    Param(
        "method",
        "tomo",
        "tomo: no component on a good path; score: large share of bad paths; coverage: most bad paths; pll: deTector's",
        choices=("tomo", "score", "coverage", "pll"),
    ),
    Param("threshold", 0.01, "share of failed attempts above which a path is bad", low=0, high=0.999),
    Param("hit_ratio", 0.6, "pll, score: least share of a component's paths that is bad", low=0.01, high=1),
    Param("min_paths", 3, "least number of bad paths that a component must explain", low=1, high=1000),
    Param("layer", "underlay", "layer of the probes to read", choices=("underlay", "overlay")),
)

ANALYZER = Analyzer(
    name="boolean",
    version="1.1.1",
    title="Boolean baselines: components at fault by good and bad paths alone",
    inputs=INPUTS,
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.boolean.analysis:analyze"),
)
