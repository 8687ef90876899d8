"""Two indexes for `incident_alert` instead of four, and no check of each new row: most of the cost of a storm's alerts.

Made beside what is in use, so that the version before places alerts meanwhile; it needs no more than this afterwards.
"""

import django.db.models.deletion
from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations, models

NAME = "an_alert_joins_an_incident_once"


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("incident", "0001_initial")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                # What a migration that was ended before its time left, which is not valid.
                migrations.RunSQL(f"ALTER TABLE incident_alert DROP CONSTRAINT IF EXISTS {NAME}"),
                migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}"),
                migrations.RunSQL(
                    f"CREATE UNIQUE INDEX CONCURRENTLY {NAME} ON incident_alert (alert, incident_id)"
                ),
                migrations.RunSQL(
                    f"ALTER TABLE incident_alert ADD CONSTRAINT {NAME} UNIQUE USING INDEX {NAME}"
                ),
            ],
            state_operations=[
                migrations.AddConstraint(
                    model_name="memberalert",
                    constraint=models.UniqueConstraint(fields=("alert", "incident"), name=NAME),
                )
            ],
        ),
        migrations.RemoveConstraint(model_name="memberalert", name="an_alert_joins_once"),
        RemoveIndexConcurrently(model_name="memberalert", name="incident_alert_alert"),
        migrations.AlterField(
            model_name="memberalert",
            name="incident",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="members",
                to="incident.incidentrow",
            ),
        ),
    ]
