"""Declaration of `metric_blame`: version, parameters, and what it reads. The method is imported by its first run."""

from __future__ import annotations

from datetime import timedelta

from analyzers.builtin.reductions import metric_series
from analyzers.contract import Analyzer, Count, Deferred, Input, Param, Reduction

SLICE = timedelta(seconds=30)

SERIES = metric_series(SLICE)

NEEDS = Reduction(
    "needs",
    kind="topology",
    group_by=("component", "depends_on"),
    aggregates={"rows": Count()},
    or_within=True,
)
"""Dependencies of each component: for a service, the services that it calls."""

COMPONENT = (
    "component,service,service_name,service.name,microservice,app,app_kubernetes_io_name,app.kubernetes.io/name,"
    "deployment,k8s.deployment.name,workload,container,container_name,k8s.container.name,pod,pod_name,k8s.pod.name,"
    "job,node,nodename,host,hostname,host.name,instance"
)
"""Labels that name the component, the first that a series has."""

PARAMS = (
    Param(
        "persist_seconds", 90.0, "shortest duration of a change that counts, in seconds", low=30, high=86_400
    ),
    Param("min_evidence", 7.0, "least evidence against chance of a symptom, in nats", low=1, high=50),
    Param("min_history", 12, "least readings of a series before the window", low=6, high=10_000),
    Param("component_label", "", "label that names the component (default: the first known one)"),
    Param("internal", "", "words of metrics of a component's own resources, separated by commas"),
    Param("external", "", "words of metrics that say how its callers fare, separated by commas"),
)

HISTORY = 12

ANALYZER = Analyzer(
    name="metric_blame",
    version="1.5.0",
    title="Names the service or component whose metrics changed first and most, from metrics and the call graph",
    inputs=(Input("metric_and_topology", (SERIES, NEEDS)), Input("metric", (SERIES,))),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.metric_blame.analysis:analyze"),
    history=HISTORY,
    length=timedelta(minutes=10),
)
