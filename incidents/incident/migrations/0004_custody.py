"""Who has an incident, since when, and for how long each had it."""

from django.db import migrations, models


def add(name: str, field: models.Field) -> migrations.AddField:
    return migrations.AddField(model_name="incidentrow", name=name, field=field)


class Migration(migrations.Migration):
    dependencies = [("projections", "0003_member_alerts")]

    operations = [
        add("bounces", models.IntegerField(default=0)),
        add("handed_over", models.JSONField(null=True)),
        add("handed_from", models.CharField(max_length=60, null=True)),
        add("accepted_at", models.DateTimeField(null=True)),
        add("accepted_by", models.TextField(null=True)),
        add("team_since", models.DateTimeField(null=True)),
        add("team_seconds", models.JSONField(default=dict)),
        add("owner_seconds", models.JSONField(default=dict)),
        add("counted_at", models.DateTimeField(null=True)),
        add("seconds_to_team", models.FloatField(null=True)),
        # A row whose version is not its stream's is not believed: commands fold these incidents from the log until
        # they are written again, or `rebuild_projections` has filled what is new.
        migrations.RunSQL(
            "UPDATE incident SET version = 0, team_since = opened_at, counted_at = opened_at",
            migrations.RunSQL.noop,
        ),
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.AlterField(model_name="incidentrow", name="team_since", field=models.DateTimeField()),
        migrations.AlterField(model_name="incidentrow", name="counted_at", field=models.DateTimeField()),
        migrations.AddIndex(
            model_name="incidentrow",
            index=models.Index(
                fields=["handed_from"],
                condition=models.Q(handed_from__isnull=False),
                name="incident_unanswered",
            ),
        ),
    ]
