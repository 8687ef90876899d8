from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("alerts", "0002_change_validation")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE alert_heartbeat RENAME COLUMN heard_at TO received_at",
            "ALTER TABLE alert_heartbeat RENAME COLUMN received_at TO heard_at",
        ),
    ]
