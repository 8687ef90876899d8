from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="topology",
    help="what contains the component and what it needs, from `time` on",
    fields=(
        TIME,
        Field("component", "component", "the component that the row is about"),
        Field("parents", "components", "what contains it", optional=True, may_be_empty=True),
        Field("depends_on", "components", "what it needs", optional=True, may_be_empty=True),
        Field("labels", "labels", "what else is known of it", optional=True, default="{}"),
        Field("active", "flag", "false: the component is gone", optional=True, default=True),
    ),
    key="component",
)
