from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_perftracker_schedule")]

    operations = [
        migrations.CreateModel(
            name="ProbeRequest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("region", models.CharField(max_length=600)),
                ("incident", models.BigIntegerField(help_text="number of the incident")),
                ("question", models.CharField(help_text="id of the question", max_length=40)),
                ("src", models.CharField(max_length=600)),
                ("dst", models.CharField(max_length=600)),
                (
                    "hops",
                    models.JSONField(default=list, help_text="what the probes should pass; empty: any path"),
                ),
                ("packets", models.PositiveIntegerField()),
                ("until", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["region", "until"], name="probe_request_region")],
                "constraints": [
                    models.UniqueConstraint(fields=("incident", "question"), name="probe_request_once")
                ],
            },
        ),
    ]
