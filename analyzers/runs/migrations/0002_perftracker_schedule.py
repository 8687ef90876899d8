"""A schedule for profiles, as for the other kinds of training jobs: it never runs where none arrive."""

from datetime import timedelta

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

MINUTES = timedelta(minutes=5)


def add_schedule(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    schedule = apps.get_model("runs", "Schedule")
    defaults = {
        "analyzer": "perftracker",
        "length": MINUTES,
        "every": MINUTES,
        "grace": timedelta(seconds=30),
    }
    schedule.objects.get_or_create(name="perftracker-5m", defaults=defaults)


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial")]

    operations = [migrations.RunPython(add_schedule, migrations.RunPython.noop)]
