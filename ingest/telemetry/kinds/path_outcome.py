from ingest.telemetry.kinds.declare import TIME, AtMost, Field, Kind

KIND = Kind(
    name="path_outcome",
    help="attempts that depended on all these components, and how many of them failed",
    fields=(
        TIME,
        Field("components", "components", "what every attempt depended on"),
        Field("attempts", "count", "how many attempts", low=1),
        Field("failures", "count", "how many of them failed"),
        Field("weight", "amount", "how much the row counts", optional=True, default=1.0),
    ),
    checks=(AtMost("failures", "attempts"),),
)
