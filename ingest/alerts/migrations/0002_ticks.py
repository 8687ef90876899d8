"""What beat ticks for alerts."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

# Seconds. A tick that finds no worker within its period is of no use later.
PERIODIC = {"alerts.expire": 10, "alerts.maintain": 3600}


def add_periodic_tasks(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    interval = apps.get_model("django_celery_beat", "IntervalSchedule")
    periodic = apps.get_model("django_celery_beat", "PeriodicTask")
    for task, seconds in PERIODIC.items():
        period, _ = interval.objects.get_or_create(every=seconds, period="seconds")
        periodic.objects.get_or_create(
            name=task, defaults={"task": task, "interval": period, "expire_seconds": seconds}
        )


class Migration(migrations.Migration):
    dependencies = [("alerts", "0001_tables"), ("django_celery_beat", "0019_alter_periodictasks_options")]
    operations = [migrations.RunPython(add_periodic_tasks, migrations.RunPython.noop)]
