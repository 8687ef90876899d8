from ingest.telemetry.kinds.declare import TIME, Field, Kind, NotEmptyWhile

KIND = Kind(
    name="placement",
    help="components that a unit (VM, disk) depends on, from `time` on",
    fields=(
        TIME,
        Field("unit", "name", "placed unit, such as vm/v17"),
        Field("components", "components", "components that the unit depends on", may_be_empty=True),
        Field("active", "flag", "false: the placement ends", optional=True, default=True),
    ),
    checks=(NotEmptyWhile("components", "active"),),
    key="unit",
)
