from datetime import timedelta

from ingest.telemetry.kinds.declare import Field, Kind

KIND = Kind(
    name="change",
    help="rollout of a change of configuration or software; the last row of a change before its"
    " rollout counts",
    fields=(
        Field(
            "time",
            "time",
            "time of the rollout, up to 60 days ahead: RFC 3339 with a zone, or integer nanoseconds"
            " since 1970",
        ),
        Field("change", "name", "identifier of the change, such as CHG-1042"),
        Field("kind", "name", "sort of change, such as config, deploy, firmware or maintenance"),
        Field("targets", "components", "changed components", optional=True, may_be_empty=True),
        Field("author", "text", "author of the change", optional=True, default=""),
        Field("team", "text", "team of the author", optional=True, default=""),
        Field("settings", "labels", "the new value of each changed key", optional=True, default="{}"),
        Field(
            "measures",
            "measures",
            "figures by name, such as lines, files, reviewers and rollout (share of the targets at once, 0 to 1)",
            optional=True,
            default="{}",
        ),
    ),
    has_long_retention=True,
    ahead=timedelta(days=60),
)
