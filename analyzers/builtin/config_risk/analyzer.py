"""Declaration of `config_risk`: version, parameters, and what it reads. The method is imported by its first run."""

from __future__ import annotations

from datetime import timedelta

from analyzers.contract import Analyzer, Count, Deferred, Input, Param, Reduction

CHANGES = Reduction(
    "changes",
    kind="change",
    group_by=("change", "time", "kind", "targets", "author", "team", "settings", "measures"),
    aggregates={"rows": Count()},
)

OUTCOMES = Reduction(
    "outcomes",
    kind="change_outcome",
    group_by=("change", "time", "outcome"),
    aggregates={"rows": Count()},
)

PARAMS = (
    Param(
        "horizon_hours",
        48.0,
        "a change without a bad outcome for so long counts as good, in hours",
        low=0.1,
        high=8760,
    ),
    Param("least_risk", 0.2, "least probability of a bad outcome at which a change is named", low=0, high=1),
    Param("min_changes", 60, "least changes with a known outcome to learn from", low=20, high=100_000),
    Param("min_bad", 8, "least changes with a bad outcome to learn from", low=4, high=100_000),
)

HISTORY = 26

ANALYZER = Analyzer(
    name="config_risk",
    version="2.2.0",
    title="Gives each change the probability of an incident or a rollback, with the rule that it follows from",
    inputs=(Input("change_and_outcome", (CHANGES, OUTCOMES)),),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.config_risk.analysis:analyze"),
    history=HISTORY,
    length=timedelta(days=7),
)
