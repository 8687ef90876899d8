from ingest.telemetry.kinds.declare import After, Field, Kind

KIND = Kind(
    name="uptime",
    help="a unit (a VM, a disk, a service) was up or down from `start` to `end`",
    fields=(
        Field("start", "time", "when it began: RFC 3339 with a zone, or integer nanoseconds since 1970"),
        Field("unit", "name", "what was up or down, such as vm/v17"),
        Field("end", "time", "when it ended, or until when it was seen to last"),
        Field("state", "choice", "how it was", choices=("up", "down")),
        Field("cause", "text", "why it was down", optional=True, default=""),
        Field(
            "hops_class",
            "choice",
            "how far it was placed from what it depends on",
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
