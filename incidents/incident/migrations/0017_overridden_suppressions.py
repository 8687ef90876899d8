from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("projections", "0016_quiet_incidents"),
    ]

    operations = [
        migrations.AddField(
            model_name="incidentrow",
            name="overridden",
            field=models.JSONField(default=list),
        ),
    ]
