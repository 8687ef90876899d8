"""What beat ticks for calendars: once a day, so that what recurs never runs out."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def add_periodic_task(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    interval = apps.get_model("django_celery_beat", "IntervalSchedule")
    period, _ = interval.objects.get_or_create(every=1, period="days")
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(
        name="oncall.read_calendars", defaults={"task": "oncall.read_calendars", "interval": period}
    )


class Migration(migrations.Migration):
    dependencies = [("oncall", "0001_initial"), ("django_celery_beat", "0019_alter_periodictasks_options")]
    operations = [migrations.RunPython(add_periodic_task, migrations.RunPython.noop)]
