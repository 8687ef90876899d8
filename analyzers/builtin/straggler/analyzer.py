"""Declaration of `straggler`: version, parameters, and what it reads. The method is imported by its first run."""

from __future__ import annotations

from datetime import timedelta

from analyzers.builtin.reductions import metric_series
from analyzers.contract import Analyzer, Deferred, Input, Param

SLICE = timedelta(seconds=10)

SERIES = metric_series(SLICE)

NODE = (
    "node,nodename,node_name,host,hostname,host_name,machine,server,exported_instance,instance,worker,rank,"
    "global_rank"
)
"""Labels that name the node, the first that a series has."""
COHORT = (
    "job,job_id,jobid,job_name,training_job,slurm_job_id,slurm_jobid,experiment,run,role,stage,pp_stage,pp_rank,"
    "pipeline_stage,sku,model,modelname,gpu_model"
)
"""Labels whose values are the same among peers."""

PARAMS = (
    Param("min_nodes", 4, "least nodes with the same metric that are compared", low=3, high=100_000),
    Param(
        "persist_seconds",
        180.0,
        "shortest duration of a deviation that counts, in seconds",
        low=30,
        high=86_400,
    ),
    Param(
        "least_change",
        0.05,
        "least share by which a node differs from its peers, and by which iterations are slower",
        low=0.01,
        high=1,
    ),
    Param(
        "stopped_seconds",
        300.0,
        "no iteration for so long is a job that has stopped; checkpoints may take less",
        low=30,
        high=86_400,
    ),
    Param(
        "iteration_metric", "", "name of the metric of iteration times (default: by the words of its name)"
    ),
    Param("node_label", "", "label that names the node (default: the first known one)"),
    Param("peer_labels", "", "labels that peers share, separated by commas, beside the known"),
)

HISTORY = 3

ANALYZER = Analyzer(
    name="straggler",
    version="1.3.1",
    title="Names nodes that slow or stop a training job, from iteration times and node metrics",
    inputs=(Input("metric", (SERIES,)),),
    params=PARAMS,
    analyze=Deferred("analyzers.builtin.straggler.analysis:analyze"),
    history=HISTORY,
)
