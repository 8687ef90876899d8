from ingest.telemetry.kinds.declare import After, Field, Kind

KIND = Kind(
    name="job_attempt",
    help="an attempt to run a job on these nodes is over; deepview reads it as one attempt of a path over the nodes",
    fields=(
        Field("end", "time", "end of the attempt: RFC 3339 with a zone, or integer nanoseconds since 1970"),
        Field("job", "name", "job, the same name at every attempt"),
        Field("nodes", "components", "nodes that it ran on, such as node/gpu-17"),
        Field("start", "time", "start of the attempt"),
        Field(
            "outcome",
            "choice",
            "result of the attempt; cancelled and preempted attempts say nothing of the nodes",
            choices=("completed", "failed", "cancelled", "preempted"),
        ),
    ),
    checks=(After("end", "start"),),
    has_long_retention=True,
)
