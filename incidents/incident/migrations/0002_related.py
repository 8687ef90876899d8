from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("incident", "0001_initial")]

    operations = [
        migrations.AddField(model_name="incidentrow", name="related", field=models.JSONField(default=dict)),
    ]
