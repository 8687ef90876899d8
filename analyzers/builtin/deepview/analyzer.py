"""Declaration of `deepview`: version, parameters, and what it reads. The method is imported by its first run.

Three inputs give the same three tables under the same names, so that the method does not depend on the input; an
attempt of a job is one attempt of a path over its nodes:

- `paths`: every path (a set of components, hosts taken out) with its `attempts` (units, or tries);
- `failing`: failures only, with the host among the components where the sender named one. One host that dies takes
  its units on many paths down with it: a count of hosts per path would see that host once on each path, so the hosts
  stay in the rows and the method counts them per component;
- `over_time`: the same failures in slices of five minutes, for the chart and for the time of the last failure.
"""

from __future__ import annotations

from datetime import timedelta

from analyzers.contract import Analyzer, AsOf, Count, CountDistinct, Deferred, Input, Param, Reduction, Sum

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

_OVER = ("outcome", ("completed", "failed"))
_FAILED = ("outcome", ("failed",))

JOB_ATTEMPT = Input(
    "job_attempt",
    (
        Reduction("paths", "job_attempt", ("nodes",), {"attempts": Count()}, only=_OVER),
        Reduction("failing", "job_attempt", ("nodes",), {"failures": Count()}, only=_FAILED),
        Reduction("over_time", "job_attempt", ("nodes",), {"failures": Count()}, only=_FAILED, slice=SLICE),
    ),
)

INPUTS = (PLACEMENT, PATH_OUTCOME, JOB_ATTEMPT)


PARAMS = (
    Param(
        "method",
        "binomial",
        "binomial: likelihood with a baseline from history; lasso: the published method",
        choices=("binomial", "lasso"),
    ),
    Param(
        "margin",
        0.25,
        "binomial: nats of evidence above log(components of a kind x kinds x windows a day)",
        low=-5,
        high=50,
    ),
    Param(
        "sure_margin", 3.0, "binomial: nats above the threshold that make one window enough", low=0, high=100
    ),
    Param(
        "min_rate", 0.001, "binomial: least share of a component's units worth an incident", low=0, high=0.5
    ),
    Param(
        "min_witnesses", 2.0, "binomial: least number of hosts (else units) with failures", low=1, high=1000
    ),
    Param("alpha", 0.01, "lasso: level of the one-sided test", low=1e-9, high=0.5),
    Param("test", "z_mean", "lasso: which test against the mean", choices=("z_mean", "refit")),
    Param("folds", 5, "lasso: folds of the cross-validation", low=2, high=20),
)

HISTORY = 12

ANALYZER = Analyzer(
    name="deepview",
    version="2.5.1",
    title="Blames the component that failing paths share and healthy paths avoid",
    inputs=INPUTS,
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.deepview.analysis:analyze"),
    history=HISTORY,
)
