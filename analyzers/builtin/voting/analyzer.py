"""Declaration of `voting`: version, parameters, and what it reads. The method is imported by its first run.

What voting reads: what every path carried, and the flows that lost something.

Both inputs give the same two tables under the same names:

- `paths`: every path (a set of components) with the packets `sent` over it and those `lost`;
- `failing`: only what lost packets, by the two hosts that talked where the sender named them, in slices of half a
  minute (the epoch of 007) for the chart and for the times of the first and last loss. `flows` counts rows: a
  failing flow is a row that lost a packet.
"""

from __future__ import annotations

from datetime import timedelta

from analyzers.contract import Analyzer, Count, Deferred, Input, Param, Reduction, Sum

SLICE = timedelta(seconds=30)

PROBE = Input(
    "probe",
    (
        Reduction(
            "paths",
            kind="probe",
            group_by=("hops", "layer"),
            aggregates={"sent": Sum("sent"), "lost": Sum("lost")},
        ),
        Reduction(
            "failing",
            kind="probe",
            group_by=("hops", "src", "dst", "layer"),
            aggregates={"flows": Count(), "sent": Sum("sent"), "lost": Sum("lost")},
            slice=SLICE,
            where="lost",
        ),
    ),
)

PATH_OUTCOME = Input(
    "path_outcome",
    (
        Reduction(
            "paths",
            kind="path_outcome",
            group_by=("components",),
            aggregates={"sent": Sum("attempts"), "lost": Sum("failures")},
        ),
        Reduction(
            "failing",
            kind="path_outcome",
            group_by=("components",),
            aggregates={"flows": Count(), "sent": Sum("attempts"), "lost": Sum("failures")},
            slice=SLICE,
            where="failures",
        ),
    ),
)

INPUTS = (PROBE, PATH_OUTCOME)


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
    Param("layer", "underlay", "layer of the probes to read", choices=("underlay", "overlay")),
)

ANALYZER = Analyzer(
    name="voting",
    version="1.11.0",
    title="Blames the link or device that the flows which lost packets have in common",
    inputs=INPUTS,
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.voting.analysis:analyze"),
)
