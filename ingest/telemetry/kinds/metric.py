from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="metric",
    help="a sample of a time series",
    fields=(
        TIME,
        Field("name", "name", "what is measured, such as node_load1"),
        Field("labels", "labels", "which series of that name", optional=True, default="{}"),
        Field("value", "amount", "what was measured at that time", signed=True),
    ),
)
