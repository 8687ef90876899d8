"""What a new installation watches besides Deepview's windows. A schedule whose kinds never arrive never runs."""

from datetime import timedelta

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
WINDOWS = {
    "voting-15m": ("voting", 15 * MINUTE, 5 * MINUTE),
    "trace-blame-5m": ("trace_blame", 5 * MINUTE, 5 * MINUTE),
    "validator-1d": ("validator", DAY, DAY),
    "panorama-2m": ("panorama", 2 * MINUTE, MINUTE),
    "tor-availability-7d": ("tor_availability", 7 * DAY, DAY),
}


def add_schedules(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    schedule = apps.get_model("runs", "Schedule")
    for name, (analyzer, length, every) in WINDOWS.items():
        schedule.objects.get_or_create(
            name=name, defaults={"analyzer": analyzer, "length": length, "every": every}
        )


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_defaults")]
    operations = [migrations.RunPython(add_schedules, migrations.RunPython.noop)]
