from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("projections", "0005_snoozing")]
    operations = [
        migrations.AddField(
            model_name="incidentrow", name="known_until", field=models.JSONField(default=dict)
        ),
    ]
