"""The schedules of a new installation; the daily reports made so far become theirs."""

from datetime import UTC, datetime, time, timedelta

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

ANALYSES = [{"analyzer": "availability"}, {"analyzer": "tor_availability"}, {"analyzer": "colocation"}]


def add_schedules(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    schedules = apps.get_model("reports", "ReportSchedule").objects
    schedules.create(name="daily", title="Daily report", cadence="daily", analyses=ANALYSES)
    schedules.create(name="weekly", title="Weekly report", cadence="weekly", analyses=ANALYSES)
    schedules.create(name="monthly", title="Monthly report", cadence="monthly", analyses=ANALYSES)


def keep_daily_reports(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    from incidents.reports.events import PRODUCED

    produced = apps.get_model("reports", "ProducedReport").objects
    for old in apps.get_model("reports", "DailyReport").objects.all():
        start = datetime.combine(old.day, time(), UTC)
        produced.create(
            id=f"daily-{old.day}",
            schedule="daily",
            start=start,
            end=start + timedelta(days=1),
            body=PRODUCED.upcasters[1](old.body),
            position=old.position,
        )


class Migration(migrations.Migration):
    dependencies = [("reports", "0003_schedules")]
    operations = [
        migrations.RunPython(add_schedules, migrations.RunPython.noop),
        migrations.RunPython(keep_daily_reports, migrations.RunPython.noop),
        migrations.DeleteModel("DailyReport"),
    ]
