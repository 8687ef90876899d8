from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="endpoint",
    help="an endpoint of a training job (a container and one of its network cards) is ready from `time` on",
    fields=(
        TIME,
        Field("endpoint", "component", "the endpoint, as probes name it, such as endpoint/job7-3-r0"),
        Field("job", "name", "training job that it belongs to"),
        Field("host", "component", "host that it runs on, such as host/h17"),
        Field("nic", "component", "network card that it uses, such as nic/h17-0"),
        Field("rail", "count", "index of the network card in its host"),
        Field("container", "text", "container that it runs in", optional=True, default=""),
        Field("tenant", "text", "tenant or virtual network (VNI)", optional=True, default=""),
        Field("active", "flag", "false: the endpoint is gone", optional=True, default=True),
    ),
    key="endpoint",
)
