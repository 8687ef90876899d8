"""Declaration of `voting`: inputs, parameters and version. The method is imported by its first run."""

from __future__ import annotations

from analyzers.builtin.voting.reductions import INPUTS
from analyzers.contract import Analyzer, Deferred, Param

USUAL_MARGIN = 1.0
"""Nats over the log of the components of its kind times the kinds that a component needs alone, unless more or less is
asked for."""

PARAMS = (
    Param(
        "method",
        "explain",
        "explain: greedy explanation by likelihood; 007: weighted votes; majority: most votes",
        choices=("explain", "007", "majority"),
    ),
    Param(
        "margin",
        USUAL_MARGIN,
        "explain: nats of evidence above log(components of a kind x kinds)",
        low=-5,
        high=50,
    ),
    Param(
        "sure_margin", 8.0, "explain: nats above the threshold that make one window enough", low=0, high=100
    ),
    Param("min_loss", 5e-5, "explain: least loss rate of a component worth an incident", low=0, high=0.5),
    Param(
        "min_flows", 3, "least number of pairs of hosts that must have lost packets there", low=1, high=1000
    ),
    Param("vote_share", 0.01, "007: least share of the votes that are left", low=0, high=1),
    Param("layer", "underlay", "which probes to read", choices=("underlay", "overlay")),
)

ANALYZER = Analyzer(
    name="voting",
    version="1.6.1",
    title="Blames the link or device that the flows which lost packets have in common",
    inputs=INPUTS,
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.voting.analysis:analyze"),
)
