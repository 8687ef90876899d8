"""What runs keep is kept for a time after its last use."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_pingmesh")]
    operations = [
        step
        for model in ("storedwindow", "storedverdict")
        for step in (
            migrations.RenameField(model_name=model, old_name="kept_at", new_name="used_at"),
            migrations.AlterField(
                model_name=model,
                name="used_at",
                field=models.DateTimeField(auto_now_add=True, db_index=True),
            ),
        )
    ]
