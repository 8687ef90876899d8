from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("projections", "0012_suggestions_due"),
    ]

    operations = [
        migrations.CreateModel(
            name="EndedSuppression",
            fields=[
                ("alert", models.UUIDField(primary_key=True, serialize=False)),
                ("why", models.TextField()),
                ("at", models.DateTimeField(db_index=True)),
            ],
            options={
                "db_table": "incident_ended_suppression",
            },
        ),
    ]
