from ingest.telemetry.kinds.declare import Field, Kind

KIND = Kind(
    name="change_outcome",
    help="the outcome of a change is known; a change with any bad outcome is bad, unless a later row says harmless",
    fields=(
        Field(
            "time",
            "time",
            "when the outcome was known: RFC 3339 with a zone, or integer nanoseconds since 1970",
        ),
        Field("change", "name", "identifier of the change, such as CHG-1042"),
        Field(
            "outcome",
            "choice",
            "result of the change; harmless withdraws what was recorded before",
            choices=("good", "incident", "rolled_back", "harmless"),
        ),
        Field("incident", "text", "the incident that it caused", optional=True, default=""),
    ),
    has_long_retention=True,
)
