from django.db import migrations, models

COPY = """
INSERT INTO incident_suppressed_alert (alert, silence, why, at, ended_at)
SELECT alert, '00000000-0000-0000-0000-000000000000', why, at, at FROM incident_ended_suppression
ON CONFLICT DO NOTHING
"""


class Migration(migrations.Migration):
    dependencies = (("incident", "0002_resolved_members"),)
    operations = (
        migrations.AddField("suppressedalert", "ended_at", models.DateTimeField(null=True, db_index=True)),
        migrations.RunSQL(COPY, migrations.RunSQL.noop),
        migrations.DeleteModel("EndedSuppression"),
    )
