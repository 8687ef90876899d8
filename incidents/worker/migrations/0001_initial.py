import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    """The tables are there already: they were `delivery`'s."""

    initial = True
    dependencies = [("delivery", "0008_key_check")]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Heartbeat",
                    fields=[
                        ("name", models.CharField(max_length=80, primary_key=True, serialize=False)),
                        ("at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("did", models.PositiveIntegerField(default=0)),
                        ("error", models.TextField(blank=True, default="")),
                    ],
                    options={"db_table": "delivery_heartbeat"},
                ),
                migrations.CreateModel(
                    name="Process",
                    fields=[("number", models.IntegerField(primary_key=True, serialize=False))],
                    options={"db_table": "delivery_process"},
                ),
            ]
        )
    ]
