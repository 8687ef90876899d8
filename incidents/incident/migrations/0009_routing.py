from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("projections", "0008_members_in_order")]

    operations = [
        migrations.AddField("incidentrow", "service", models.CharField(max_length=60, null=True)),
        migrations.AddField("incidentrow", "policy", models.CharField(max_length=60, null=True)),
        migrations.AddField("incidentrow", "group_key", models.TextField(null=True)),
        migrations.AddIndex(
            "incidentrow",
            models.Index(
                condition=models.Q(("group_key__isnull", False)),
                fields=["group_key", "-number"],
                name="incident_group",
            ),
        ),
    ]
