from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="span",
    help="a span of a distributed trace",
    fields=(
        TIME,
        Field("trace", "id", "id of the trace"),
        Field("span", "id", "id of the span"),
        Field("parent", "id", "id of the parent span; absent for the root", optional=True, default=""),
        Field("service", "name", "service that did the work"),
        Field("instance", "name", "instance (pod, process) of the service"),
        Field("operation", "text", "name of the operation"),
        Field("duration_us", "amount", "duration", unit="microseconds"),
        Field("error", "flag", "true: the operation failed"),
    ),
)
