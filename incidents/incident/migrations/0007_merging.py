"""Which incident another was merged into, and what an incident took in."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("projections", "0006_known_until")]

    operations = [
        migrations.AddField("incidentrow", "merged_into", models.UUIDField(null=True)),
        migrations.AddField("incidentrow", "merged_number", models.BigIntegerField(null=True)),
        migrations.AddField("incidentrow", "merged", models.JSONField(default=dict)),
        migrations.AddIndex(
            model_name="incidentrow",
            index=models.Index(
                fields=["dedup_key"],
                condition=models.Q(merged_into__isnull=False),
                name="incident_merged_key",
            ),
        ),
    ]
