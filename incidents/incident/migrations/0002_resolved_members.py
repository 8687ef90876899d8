from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("incident", "0001_initial"),)
    operations = (
        migrations.RemoveIndex("memberalert", "incident_alert_page"),
        migrations.RenameField("memberalert", "resting", "resolved"),
        migrations.AddIndex(
            "memberalert",
            models.Index(fields=["incident", "resolved", "-at", "-id"], name="incident_alert_page"),
        ),
    )
