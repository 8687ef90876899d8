from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="flow_rule",
    help="a rule of a dumped flow table: `element` forwards `match` to `next`",
    fields=(
        TIME,
        Field("element", "component", "element that holds the rule, such as vswitch/h17"),
        Field("match", "name", "destination that the rule matches, such as vport/job7-3-r0"),
        Field(
            "next",
            "text",
            "element that comes next; left out: the rule has no next hop",
            optional=True,
            default="",
        ),
        Field(
            "layer",
            "name",
            "table that holds the rule: vswitch, nic (the offloaded copy), or one of your own",
        ),
    ),
)
