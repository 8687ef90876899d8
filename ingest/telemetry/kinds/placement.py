from ingest.telemetry.kinds.declare import TIME, Field, Kind, NotEmptyWhile

KIND = Kind(
    name="placement",
    help="the unit (a VM, a disk) depends on these components from `time` on",
    fields=(
        TIME,
        Field("unit", "name", "what is placed, such as vm/v17"),
        Field("components", "components", "what it depends on", may_be_empty=True),
        Field("active", "flag", "false: the placement ends", optional=True, default=True),
    ),
    checks=(NotEmptyWhile("components", "active"),),
    key="unit",
)
