"""Declaration of `deepview`: inputs, parameters and version. The method is imported by its first run."""

from __future__ import annotations

from analyzers.builtin.deepview.reductions import INPUTS
from analyzers.contract import Analyzer, Deferred, Param

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
        "min_witnesses", 2.0, "binomial: least number of hosts (else units) that must speak", low=1, high=1000
    ),
    Param("alpha", 0.01, "lasso: level of the one-sided test", low=1e-9, high=0.5),
    Param("test", "z_mean", "lasso: which test against the mean", choices=("z_mean", "refit")),
    Param("folds", 5, "lasso: folds of the cross-validation", low=2, high=20),
)

HISTORY = 12

ANALYZER = Analyzer(
    name="deepview",
    version="2.0.4",
    title="Blames the component that failing paths share and healthy paths avoid",
    inputs=INPUTS,
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.deepview.analysis:analyze"),
    history=HISTORY,
)
