"""Reports that were sent with an Idempotency-Key, for a day: state, which no event rebuilds."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0010_follow_suggestion"),
    ]

    operations = [
        # Of Alertmanager's API: who makes silences may note more than a comment.
        migrations.AddField(
            "silence",
            "annotations",
            models.JSONField(default=dict, db_default=models.Value({}, models.JSONField())),
        ),
        migrations.CreateModel(
            name="ReportIdempotencyKey",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("actor", models.TextField()),
                ("key", models.TextField()),
                ("digest", models.BinaryField()),
                ("incident", models.UUIDField()),
                ("opened", models.BooleanField()),
                ("first", models.IntegerField()),
                ("last", models.IntegerField()),
                ("at", models.DateTimeField(db_index=True)),
            ],
            options={
                "db_table": "report_idempotency_key",
                "constraints": [models.UniqueConstraint(fields=("actor", "key"), name="one_report_per_key")],
            },
        ),
    ]
