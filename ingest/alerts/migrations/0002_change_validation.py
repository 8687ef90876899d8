"""The latest validation of a change."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = (("alerts", "0001_initial"),)
    operations = (
        migrations.RunSQL(
            "ALTER TABLE reported_change ADD COLUMN validation text, ADD COLUMN validated_at timestamptz",
            "ALTER TABLE reported_change DROP COLUMN validation, DROP COLUMN validated_at",
        ),
    )
