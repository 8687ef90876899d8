"""What a new installation does by itself. Rows like any other: edit or delete them, and they stay so.

Several window lengths over the same sums: an hour sees a component that goes down, a day sees one that fails a few of
its disks a day and never looks down.
"""

from datetime import timedelta

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

WINDOWS = {
    "deepview-1h": (timedelta(hours=1), timedelta(minutes=5)),
    "deepview-6h": (timedelta(hours=6), timedelta(minutes=30)),
    "deepview-24h": (timedelta(hours=24), timedelta(hours=1)),
}
# A tick that finds no worker within its period is of no use later.
PERIODIC = {"runs.tick": 5, "runs.maintain": 300, "runs.seal": 60}


def add_schedules(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    schedule = apps.get_model("runs", "Schedule")
    for name, (length, every) in WINDOWS.items():
        schedule.objects.get_or_create(
            name=name, defaults={"analyzer": "deepview", "length": length, "every": every}
        )


def add_periodic_tasks(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    interval = apps.get_model("django_celery_beat", "IntervalSchedule")
    periodic = apps.get_model("django_celery_beat", "PeriodicTask")
    for task, seconds in PERIODIC.items():
        period, _ = interval.objects.get_or_create(every=seconds, period="seconds")
        periodic.objects.get_or_create(
            name=task, defaults={"task": task, "interval": period, "expire_seconds": seconds}
        )


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial"), ("django_celery_beat", "0019_alter_periodictasks_options")]
    operations = [
        migrations.RunPython(add_schedules, migrations.RunPython.noop),
        migrations.RunPython(add_periodic_tasks, migrations.RunPython.noop),
    ]
