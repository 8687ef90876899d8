from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="span",
    help="a span of a distributed trace",
    fields=(
        TIME,
        Field("trace", "id", "the trace that it belongs to"),
        Field("span", "id", "the span itself"),
        Field("parent", "id", "the span that caused it; left out at the root", optional=True, default=""),
        Field("service", "name", "which service did the work"),
        Field("instance", "name", "which instance (pod, process) of it"),
        Field("operation", "text", "what it did"),
        Field("duration_us", "amount", "how long it took", unit="microseconds"),
        Field("error", "flag", "whether it failed"),
    ),
)
