from ingest.telemetry.kinds.declare import TIME, AtMost, Field, Kind, NoMoreThan

KIND = Kind(
    name="probe",
    help="probes between two components: number sent and lost, round-trip times, and path",
    fields=(
        TIME,
        Field("src", "component", "source of the probes, such as host/h17"),
        Field("dst", "component", "destination of the probes"),
        Field("sent", "count", "number of probes", low=1),
        Field("lost", "count", "number of probes without an answer"),
        Field(
            "rtt_us",
            "numbers",
            "round-trip time of each answer",
            unit="microseconds",
            optional=True,
            may_be_empty=True,
        ),
        Field(
            "hops",
            "components",
            "components on the path that can be at fault: devices, or links (link/a~b; two names if"
            " the directions differ)",
            optional=True,
            may_be_empty=True,
        ),
        Field(
            "layer",
            "choice",
            "network layer",
            optional=True,
            default="underlay",
            choices=("underlay", "overlay"),
        ),
    ),
    checks=(AtMost("lost", "sent"), NoMoreThan("rtt_us", "sent")),
)
