"""Until when an incident is put aside; the sweep that wakes them looks here."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("projections", "0004_custody")]

    operations = [
        migrations.AddField("incidentrow", "snoozed_until", models.DateTimeField(null=True)),
        migrations.AddField("incidentrow", "snoozed_by", models.TextField(null=True)),
        migrations.AddIndex(
            model_name="incidentrow",
            index=models.Index(
                fields=["snoozed_until"],
                condition=models.Q(snoozed_until__isnull=False),
                name="incident_alarms",
            ),
        ),
    ]
