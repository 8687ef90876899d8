from ingest.telemetry.kinds.declare import Field, Kind

KIND = Kind(
    name="change_outcome",
    help="outcome of a change; a change with any bad outcome is bad, unless a later row says harmless",
    fields=(
        Field(
            "time",
            "time",
            "time at which the outcome became known: RFC 3339 with a zone, or integer nanoseconds since 1970",
        ),
        Field("change", "name", "identifier of the change, such as CHG-1042"),
        Field(
            "outcome",
            "choice",
            "result of the change; harmless withdraws earlier outcomes",
            choices=("good", "incident", "rolled_back", "harmless"),
        ),
        Field("incident", "text", "incident that the change caused", optional=True, default=""),
    ),
    has_long_retention=True,
)
