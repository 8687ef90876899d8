from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="topology",
    help="containment and dependencies of a component, from `time` on",
    fields=(
        TIME,
        Field("component", "component", "described component"),
        Field("parents", "components", "containing components", optional=True, may_be_empty=True),
        Field("depends_on", "components", "components that it requires", optional=True, may_be_empty=True),
        Field("labels", "labels", "further properties", optional=True, default="{}"),
        Field("active", "flag", "false: the component is gone", optional=True, default=True),
    ),
    key="component",
)
