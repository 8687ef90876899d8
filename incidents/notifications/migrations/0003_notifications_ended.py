from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("delivery", "0002_kinds")]
    operations = [
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(
                fields=["ended_at"], condition=models.Q(("state", "done")), name="notifications_ended"
            ),
        )
    ]
