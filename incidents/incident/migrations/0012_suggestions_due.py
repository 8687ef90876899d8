"""Incidents that are to be handed over to the team that is suggested for them, until that was looked at."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("projections", "0011_settling_alerts"),
    ]

    operations = [
        migrations.CreateModel(
            name="PendingAutoAssign",
            fields=[
                ("incident", models.UUIDField(primary_key=True, serialize=False)),
                ("route", models.CharField(max_length=60)),
            ],
            options={"db_table": "incident_pending_auto_assign"},
        ),
    ]
