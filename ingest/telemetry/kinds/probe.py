from ingest.telemetry.kinds.declare import TIME, AtMost, Field, Kind, NoMoreThan

KIND = Kind(
    name="probe",
    help="probes between two components: how many were sent and lost, how long the answers took, what they passed",
    fields=(
        TIME,
        Field("src", "component", "where the probes came from, such as host/h17"),
        Field("dst", "component", "where they went"),
        Field("sent", "count", "how many probes", low=1),
        Field("lost", "count", "how many got no answer"),
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
            "what the probes passed and you could fault: devices, or links (link/a~b; two names where the two "
            "directions differ)",
            optional=True,
            may_be_empty=True,
        ),
        Field(
            "layer",
            "choice",
            "which network",
            optional=True,
            default="underlay",
            choices=("underlay", "overlay"),
        ),
    ),
    checks=(AtMost("lost", "sent"), NoMoreThan("rtt_us", "sent")),
)
