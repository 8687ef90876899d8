"""What Deepview reads: how many units each path carries, and which of them failed.

Two inputs give the same three tables under the same names, so that the method does not know which one it was
given:

- `paths`: every path (a set of components, hosts taken out) with its `attempts` (units, or tries);
- `failing`: only what failed, with the host left among the components where the sender named one. One host
  that dies takes its units on many paths down with it: a count of hosts per path would see that host once on
  each path, so the hosts themselves are kept and counted per component by the method;
- `over_time`: the same failures in slices of five minutes, for the chart and for the time of the last
  failure.
"""

from __future__ import annotations

from datetime import timedelta

from analyzers.contract import AsOf, Count, CountDistinct, Input, Reduction, Sum

WITNESS_KIND = "host"
"""The kind of component that dies as one piece: it is counted as a witness and never blamed."""

SLICE = timedelta(minutes=5)

_PLACED = AsOf(kind="placement", key="unit")

PLACEMENT = Input(
    "placement",
    (
        Reduction(
            "paths",
            kind="placement",
            group_by=("components",),
            aggregates={"attempts": Count()},
            witness_kinds=(WITNESS_KIND,),
        ),
        Reduction(
            "failing",
            kind="unit_failure",
            as_of=_PLACED,
            group_by=("components",),
            aggregates={"failures": CountDistinct("unit")},
        ),
        Reduction(
            "over_time",
            kind="unit_failure",
            as_of=_PLACED,
            group_by=("components",),
            aggregates={"failures": CountDistinct("unit")},
            witness_kinds=(WITNESS_KIND,),
            slice=SLICE,
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
            aggregates={"attempts": Sum("attempts")},
            witness_kinds=(WITNESS_KIND,),
        ),
        Reduction(
            "failing",
            kind="path_outcome",
            group_by=("components",),
            aggregates={"failures": Sum("failures")},
            where="failures",
        ),
        Reduction(
            "over_time",
            kind="path_outcome",
            group_by=("components",),
            aggregates={"failures": Sum("failures")},
            witness_kinds=(WITNESS_KIND,),
            slice=SLICE,
            where="failures",
        ),
    ),
)

INPUTS = (PLACEMENT, PATH_OUTCOME)
