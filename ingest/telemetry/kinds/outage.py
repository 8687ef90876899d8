from ingest.telemetry.kinds.declare import STILL_GOING, After, Field, Kind

KIND = Kind(
    name="outage",
    help="outage of a device from `start` to `end`; send it again with its end",
    fields=(
        Field(
            "start", "time", "start of the outage: RFC 3339 with a zone, or integer nanoseconds since 1970"
        ),
        Field("device", "component", "failed device, such as tor/dc1-t12"),
        Field("end", "time", "end of the outage; absent while it lasts", optional=True, default=STILL_GOING),
        Field(
            "cause",
            "name",
            "cause: soft (repaired by a reboot), hard (device has to be replaced), or your own word",
        ),
        Field("planned", "flag", "whether it was planned", optional=True, default=False),
    ),
    checks=(After("end", "start"),),
    key="device",
    end="end",
    has_long_retention=True,
)
