"""Declaration of `perftracker`: version, parameters, and what it reads. The method is imported by its first run."""

from __future__ import annotations

from analyzers.contract import Analyzer, Count, Deferred, Input, Param, Reduction, Sum

PROFILES = Reduction(
    "profiles",
    kind="function_profile",
    group_by=("job", "role", "worker", "function", "cls"),
    aggregates={"beta": Sum("beta"), "mu": Sum("mu"), "sigma": Sum("sigma"), "rows": Count()},
)
"""Patterns of each function on each worker; of several profiles in a window, their mean."""

PLACES = Reduction(
    "places",
    kind="topology",
    group_by=("component", "parents"),
    aggregates={"rows": Count()},
    or_within=True,
)
"""Parents of each component: for a worker, its node."""

PARAMS = (
    Param(
        "method",
        "robust",
        "robust scales and learnt tails, or the published constants",
        choices=("robust", "published"),
    ),
    Param("min_workers", 4, "least workers of one role that are compared", low=3, high=100_000),
    Param(
        "least_share",
        0.02,
        "least share of the critical path that a function has somewhere to be judged",
        low=0.0001,
        high=1,
    ),
    Param(
        "least_change",
        0.1,
        "least share by which the use of a resource falls, or time on the critical path grows",
        low=0.01,
        high=1,
    ),
    Param(
        "most_apart",
        0.05,
        "share of a role that differs in a function, above which it counts as a group with other work",
        low=0.001,
        high=0.5,
    ),
    Param(
        "common_share",
        0.05,
        "share of the critical path from which on a Python function that all workers have is a common cause",
        low=0.001,
        high=1,
    ),
)

HISTORY = 4
"""Earlier windows: enough to tell a step from what comes and goes, such as checkpoints."""

ANALYZER = Analyzer(
    name="perftracker",
    version="1.7.0",
    title="Names the function and the worker that slow a training job, from function profiles",
    inputs=(
        Input("profile_and_topology", (PROFILES, PLACES)),
        Input("function_profile", (PROFILES,)),
    ),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.perftracker.analysis:analyze"),
    history=HISTORY,
)
