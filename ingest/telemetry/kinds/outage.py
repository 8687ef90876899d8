from ingest.telemetry.kinds.declare import STILL_GOING, After, Field, Kind

KIND = Kind(
    name="outage",
    help="a device was out from `start` to `end`; send it again with its end when it is over",
    fields=(
        Field("start", "time", "when it began: RFC 3339 with a zone, or integer nanoseconds since 1970"),
        Field("device", "component", "what was out, such as tor/dc1-t12"),
        Field(
            "end", "time", "when it was over; leave it out while it lasts", optional=True, default=STILL_GOING
        ),
        Field(
            "cause",
            "name",
            "why: soft (a reboot mends it), hard (it has to be replaced), or a cause of your own",
        ),
        Field("planned", "flag", "whether it was planned", optional=True, default=False),
    ),
    checks=(After("end", "start"),),
    key="device",
    end="end",
    has_long_retention=True,
)
