from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_proberequest")]

    operations = [
        migrations.RenameField("TelemetryCursor", "heard_at", "last_received_at"),
    ]
