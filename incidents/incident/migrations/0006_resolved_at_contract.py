from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("incident", "0005_proposals")]

    operations = [
        migrations.RemoveIndex("PendingAlertResolution", "pending_resolution_order"),
        migrations.RenameField("PendingAlertResolution", "said_at", "resolved_at"),
        migrations.AddIndex(
            "PendingAlertResolution",
            models.Index(fields=["resolved_at", "incident", "alert"], name="pending_resolution_order"),
        ),
    ]
