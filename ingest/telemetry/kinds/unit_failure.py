from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="unit_failure",
    help="failure of a unit",
    fields=(
        TIME,
        Field("unit", "name", "failed unit, such as vm/v17"),
        Field("symptom", "text", "symptom, such as disk_timeout", optional=True, default=""),
    ),
)
