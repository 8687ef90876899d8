from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("delivery", "0008_key_check"), ("worker", "0001_initial")]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel(name="Heartbeat"),
                migrations.DeleteModel(name="Process"),
            ]
        )
    ]
