"""Declaration of `skeletonhunter`: version, parameters, and what it reads. The method is imported by its first run.

What it reads, as far as it is there:

- `answers`, `losses`: answers by time and losses of each pair of endpoints, in slices of 30 s;
- `paths`, `path_answers`: the same by what the probes passed, over the whole window;
- `endpoints`, `changes`: endpoints registered at the window's start or within it, and those that came and went;
- `rules`: dumped flow tables;
- `traffic`: bytes sent and received by the RNICs of each job, in slices of 100 ms.
"""

from __future__ import annotations

from datetime import timedelta

from analyzers.contract import Analyzer, Count, Deferred, Each, Input, Param, Reduction, Sum

SLICE = timedelta(seconds=30)
SAMPLE = timedelta(milliseconds=100)

PER_DECADE = 24
BINS = tuple(float(f"{10 ** (i / PER_DECADE):.4g}") for i in range(PER_DECADE * 6 + 1))
"""Edges of the bins of round-trip times, microseconds: from 1 us to 1 s, each 10 % above the one before."""

_PAIR = ("src", "dst", "layer")

PROBES = (
    Reduction("answers", "probe", _PAIR, {"answers": Count()}, slice=SLICE, each=Each("rtt_us", BINS)),
    Reduction("losses", "probe", _PAIR, {"sent": Sum("sent"), "lost": Sum("lost")}, slice=SLICE),
    Reduction("paths", "probe", ("hops", *_PAIR), {"sent": Sum("sent"), "lost": Sum("lost")}),
    Reduction("path_answers", "probe", ("hops", *_PAIR), {"answers": Count()}, each=Each("rtt_us", BINS)),
)
ENDPOINTS = (
    Reduction(
        "endpoints",
        "endpoint",
        ("endpoint", "job", "host", "nic", "rail", "container", "time"),
        {"rows": Count()},
        or_within=True,
    ),
    Reduction("changes", "endpoint", ("endpoint", "active", "time"), {"rows": Count()}, changes=True),
)
RULES = (Reduction("rules", "flow_rule", ("element", "match", "next", "layer", "time"), {"rows": Count()}),)
TRAFFIC = (
    Reduction(
        "traffic",
        "nic_traffic",
        ("job", "host", "nic", "rail"),
        {"tx": Sum("tx_bytes"), "rx": Sum("rx_bytes")},
        slice=SAMPLE,
    ),
)

INPUTS = (
    Input("all", (*PROBES, *ENDPOINTS, *RULES, *TRAFFIC)),
    Input("probe_endpoint_rule", (*PROBES, *ENDPOINTS, *RULES)),
    Input("probe_endpoint_traffic", (*PROBES, *ENDPOINTS, *TRAFFIC)),
    Input("probe_endpoint", (*PROBES, *ENDPOINTS)),
    Input("probe_rule", (*PROBES, *RULES)),
    Input("probe", PROBES),
    Input("traffic_endpoint", (*ENDPOINTS, *TRAFFIC)),
    Input("traffic", TRAFFIC),
)

USUAL_MARGIN = 1.0

PARAMS = (
    Param(
        "phase",
        "all",
        "skeleton: who communicates; detect: anomalous pairs; localise: what is at fault; all",
        choices=("skeleton", "detect", "localise", "all"),
    ),
    Param("lof", 3.0, "local outlier factor from which a slice of 30 s is anomalous", low=1.2, high=50),
    Param(
        "min_answers",
        10,
        "answers that a slice of a pair needs to be judged by their times",
        low=3,
        high=10_000,
    ),
    Param("effect", 0.10, "share by which a slice must be later than usual", low=0.01, high=10),
    Param("drift", 0.05, "share by which the long-term mean must have risen", low=0.005, high=10),
    Param("drift_z", 5.0, "standard errors by which the long-term mean must have risen", low=2, high=50),
    Param(
        "method",
        "explain",
        "votes of underlay paths; explain: by likelihood; majority: the published count",
        choices=("explain", "majority"),
    ),
    Param(
        "margin",
        USUAL_MARGIN,
        "explain: nats of evidence above log(components of a kind x kinds)",
        low=-5,
        high=50,
    ),
    Param(
        "separation", 0.15, "mean silhouette from which clusters of a skeleton are apart", low=0.0, high=0.9
    ),
    Param("uneven", 0.03, "spread of traffic within clusters up to which a job is dense", low=0.001, high=1),
)

ANALYZER = Analyzer(
    name="skeletonhunter",
    version="1.5.0",
    title="Names the network component behind lost and late probes of training jobs, and whom to probe",
    inputs=INPUTS,
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.skeletonhunter.analysis:analyze"),
    history=6,
)
