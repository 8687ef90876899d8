"""Declaration of `changepoint`: version, parameters, and what it reads. The method is imported by its first run."""

from __future__ import annotations

from datetime import timedelta

from analyzers.builtin.reductions import metric_series
from analyzers.contract import Analyzer, Deferred, Input, Param

SLICE = timedelta(minutes=1)

SERIES = metric_series(SLICE)

PARAMS = (
    Param("persist_seconds", 300.0, "shortest duration of a new level that counts", low=120, high=86_400),
    Param(
        "least_shift",
        2.0,
        "least change of level, in standard deviations of the series before it",
        low=0.5,
        high=100,
    ),
    Param("least_samples", 30, "minutes with samples that a series needs before it is judged", low=10),
    Param("named_from", 3.0, "least evidence that names a component, in nats", low=0, high=100),
    Param("component_label", "", "label that names the component (default: the narrowest known one)"),
)

HISTORY = 26
"""Windows of an hour: a day, and what is judged again with the window."""

ANALYZER = Analyzer(
    name="changepoint",
    version="1.2.0",
    title="Says which components' metrics changed and since when",
    inputs=(Input("metric", (SERIES,)),),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.changepoint.analysis:analyze"),
    history=HISTORY,
)
