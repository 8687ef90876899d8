"""Periodic tasks that a new installation has, for its migrations."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

NEEDED = ("django_celery_beat", "0019_alter_periodictasks_options")
"""The migration that one with periodic tasks depends on."""
DAY = 86_400


def periodic_tasks(every: Mapping[str, int]) -> migrations.RunPython:
    """An operation that makes beat send each named task every so many seconds. A message that finds no worker within
    its period expires, but for those of a day or more."""

    def add(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
        interval = apps.get_model("django_celery_beat", "IntervalSchedule")
        periodic = apps.get_model("django_celery_beat", "PeriodicTask")
        for task, seconds in every.items():
            span, unit = (seconds // DAY, "days") if seconds % DAY == 0 else (seconds, "seconds")
            period, _ = interval.objects.get_or_create(every=span, period=unit)
            expires = None if unit == "days" else seconds
            periodic.objects.get_or_create(
                name=task, defaults={"task": task, "interval": period, "expire_seconds": expires}
            )

    return migrations.RunPython(add, migrations.RunPython.noop)
