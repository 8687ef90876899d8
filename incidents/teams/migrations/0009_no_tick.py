"""What time does to incidents needs no broker any more: `manage.py deliver` looks for it."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def remove_tick(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name="incidents.settle").delete()


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0008_route_names_unique"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]
    operations = [migrations.RunPython(remove_tick, migrations.RunPython.noop)]
