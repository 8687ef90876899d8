from ingest.telemetry.kinds.declare import After, Field, Kind

KIND = Kind(
    name="uptime",
    help="state of a unit (VM, disk, service), up or down, from `start` to `end`",
    fields=(
        Field("start", "time", "start: RFC 3339 with a zone, or integer nanoseconds since 1970"),
        Field("unit", "name", "unit, such as vm/v17"),
        Field("end", "time", "end, or latest time at which the state was observed"),
        Field("state", "choice", "state of the unit", choices=("up", "down")),
        Field("cause", "text", "cause of a downtime", optional=True, default=""),
        Field(
            "hops_class",
            "choice",
            "distance of the unit from the components that it depends on",
            optional=True,
            default="",
            choices=("near", "far"),
        ),
    ),
    checks=(After("end", "start"),),
    key="unit",
    end="end",
    has_long_retention=True,
)
