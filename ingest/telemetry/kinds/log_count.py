from ingest.telemetry.kinds.declare import TIME, Field, Kind

SEVERITIES = ("trace", "debug", "info", "warn", "error", "fatal", "unspecified")
"""The short names of OpenTelemetry's severity ranges, in rising order; `unspecified` where a record has none."""

KIND = Kind(
    name="log_count",
    help="number of log records of one template by a component",
    fields=(
        TIME,
        Field(
            "component",
            "component",
            "component that wrote the records, such as instance/cart-0 or service/cart",
        ),
        Field("template", "text", "text of the records, with <*> for each part that varies"),
        Field(
            "severity",
            "choice",
            "severity of the records",
            optional=True,
            default="unspecified",
            choices=SEVERITIES,
        ),
        Field("count", "count", "number of records from `time` on, over some seconds", low=1),
    ),
)
