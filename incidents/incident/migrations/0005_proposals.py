from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("incident", "0004_questions"),
    ]

    operations = [
        migrations.AddField(
            model_name="incidentrow",
            name="proposals",
            field=models.JSONField(null=True),
        ),
        migrations.AddIndex(
            model_name="incidentrow",
            index=models.Index(
                condition=models.Q(("proposals__isnull", False)),
                fields=["number"],
                name="incident_proposals",
            ),
        ),
    ]
