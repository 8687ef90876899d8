from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="metric",
    help="a sample of a time series",
    fields=(
        TIME,
        Field("name", "name", "name of the metric, such as node_load1"),
        Field("labels", "labels", "labels that identify the series", optional=True, default="{}"),
        Field("value", "amount", "value at that time", signed=True),
    ),
)
