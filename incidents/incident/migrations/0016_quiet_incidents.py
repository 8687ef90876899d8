from django.db import migrations, models

# The next event of an incident writes the exact value (`incidents.domain.incident.failure.is_quiet`).
QUIET = """
UPDATE incident SET quiet = true
WHERE state <> 'resolved' AND firing = 0 AND cardinality(blamed_by) = 0
  AND (last_blamed IS NOT NULL OR alert_at IS NOT NULL)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("projections", "0015_titles_and_ownership"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="incidentrow",
            name="incident_inbox",
        ),
        migrations.AddField(
            model_name="incidentrow",
            name="quiet",
            field=models.BooleanField(default=False),
        ),
        migrations.RunSQL(QUIET, migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="incidentrow",
            index=models.Index(fields=["state", "severity_rank", "quiet", "-number"], name="incident_inbox"),
        ),
    ]
