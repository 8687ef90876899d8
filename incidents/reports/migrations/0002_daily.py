"""Look every ten minutes whether a finished day has no report yet."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def add_periodic_task(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    period, _ = apps.get_model("django_celery_beat", "IntervalSchedule").objects.get_or_create(
        every=600, period="seconds"
    )
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(
        name="reports.daily", defaults={"task": "reports.daily", "interval": period, "expire_seconds": 600}
    )


class Migration(migrations.Migration):
    dependencies = [("reports", "0001_initial"), ("django_celery_beat", "0019_alter_periodictasks_options")]
    operations = [migrations.RunPython(add_periodic_task, migrations.RunPython.noop)]
