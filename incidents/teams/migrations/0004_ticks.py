"""What beat ticks for incidents."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

SECONDS = 30


def add_periodic_task(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    interval = apps.get_model("django_celery_beat", "IntervalSchedule")
    period, _ = interval.objects.get_or_create(every=SECONDS, period="seconds")
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(
        name="incidents.settle",
        defaults={"task": "incidents.settle", "interval": period, "expire_seconds": SECONDS},
    )


class Migration(migrations.Migration):
    dependencies = [("catalog", "0003_silences"), ("django_celery_beat", "0019_alter_periodictasks_options")]
    operations = [migrations.RunPython(add_periodic_task, migrations.RunPython.noop)]
