from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="chatworkspace",
            name="platform",
            field=models.CharField(
                choices=[("slack", "Slack"), ("mattermost", "Mattermost")], default="slack", max_length=20
            ),
        ),
        migrations.AddField(
            model_name="chatworkspace",
            name="url",
            field=models.CharField(blank=True, default="", max_length=2000),
        ),
    ]
