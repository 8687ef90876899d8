from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("incident", "0003_remediation"),
    ]

    operations = [
        migrations.AddField(
            model_name="incidentrow",
            name="questions",
            field=models.JSONField(null=True),
        ),
        migrations.AddIndex(
            model_name="incidentrow",
            index=models.Index(
                condition=models.Q(("questions__isnull", False)),
                fields=["number"],
                name="incident_questions",
            ),
        ),
    ]
