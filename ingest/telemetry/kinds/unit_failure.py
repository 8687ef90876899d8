from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="unit_failure",
    help="a unit failed",
    fields=(
        TIME,
        Field("unit", "name", "what failed, such as vm/v17"),
        Field("symptom", "text", "how it failed, such as disk_timeout", optional=True, default=""),
    ),
)
