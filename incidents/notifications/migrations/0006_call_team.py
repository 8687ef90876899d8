from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("delivery", "0005_processes")]

    operations = [
        migrations.AddField(
            model_name="notification",
            name="team",
            field=models.TextField(default="", db_default=""),
        ),
    ]
