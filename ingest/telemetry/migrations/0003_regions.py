"""Indexes by which a window reads the rows of its own region, and a run the receipts after its position."""

from django.db import migrations

TABLES = [
    "benchmark",
    "change",
    "change_outcome",
    "collective",
    "flow_rule",
    "function_profile",
    "job_attempt",
    "log_count",
    "metric",
    "nic_traffic",
    "node_incident",
    "observation",
    "path_outcome",
    "probe",
    "span",
    "unit_failure",
]

# ONLY: no writer waits for the index of a large partition. `ingest.telemetry.store.tables.maintain` makes those of the
# partitions that are there.
PLACES = "\n".join(
    f"""
DROP INDEX telemetry_{name}_time;
CREATE INDEX telemetry_{name}_place ON ONLY telemetry_{name}
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');
"""
    for name in TABLES
)


class Migration(migrations.Migration):
    dependencies: list[tuple[str, str]] = [("telemetry", "0002_changes")]
    operations = [migrations.RunSQL(PLACES)]
