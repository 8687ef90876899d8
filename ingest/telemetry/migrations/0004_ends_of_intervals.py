"""An index by which a window finds the intervals that end after its start."""

from django.db import migrations

INDEXES = """
CREATE INDEX telemetry_outage_until ON telemetry_outage (region, "end");
CREATE INDEX telemetry_uptime_until ON telemetry_uptime (region, "end");
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0003_record")]
    operations = [migrations.RunSQL(INDEXES, "DROP INDEX telemetry_outage_until, telemetry_uptime_until")]
