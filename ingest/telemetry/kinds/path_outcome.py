from ingest.telemetry.kinds.declare import TIME, AtMost, Field, Kind

KIND = Kind(
    name="path_outcome",
    help="attempts that depended on all listed components, with the number of failures",
    fields=(
        TIME,
        Field("components", "components", "components that every attempt depended on"),
        Field("attempts", "count", "number of attempts", low=1),
        Field("failures", "count", "number of failed attempts"),
        Field("weight", "amount", "weight of the row", optional=True, default=1.0),
    ),
    checks=(AtMost("failures", "attempts"),),
)
