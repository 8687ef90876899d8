"""What voting reads: what every path carried, and the flows that lost something.

Both inputs give the same two tables under the same names:

- `paths`: every path (a set of components) with the packets `sent` over it and those `lost`;
- `failing`: only what lost packets, by the two hosts that talked where the sender named them, in slices of half a
  minute (the epoch of 007) for the chart and for the times of the first and last loss. `flows` counts rows: a
  failing flow is a row that lost a packet.
"""

from __future__ import annotations

from datetime import timedelta

from analyzers.contract import Count, Input, Reduction, Sum

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
