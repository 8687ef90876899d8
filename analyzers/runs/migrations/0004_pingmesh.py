"""A new installation also watches probes between servers, in the windows that Pingmesh's own job has."""

from datetime import timedelta

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def add_schedule(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("runs", "Schedule").objects.get_or_create(
        name="pingmesh-10m",
        defaults={
            "analyzer": "pingmesh",
            "length": timedelta(minutes=10),
            "every": timedelta(minutes=5),
        },
    )


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_more_defaults")]
    operations = [migrations.RunPython(add_schedule, migrations.RunPython.noop)]
