"""Changes of schedules: each is recorded as what it was and is, in the transaction that makes it."""

from __future__ import annotations

from typing import Any, Final

from django.db import transaction

from analyzers.api.serializers import ScheduleSerializer
from analyzers.runs.models import Schedule
from ingest.commands import record_configuration
from ingest.queries import Context

KIND: Final = "analysis_schedule"


@transaction.atomic
def put(serializer: ScheduleSerializer, context: Context) -> Schedule:
    """Create or change the object of a valid serializer. Raises Schedule.DoesNotExist if it was removed in
    the meantime."""
    row = serializer.instance
    before = schedule_as_json(_locked(row)) if isinstance(row, Schedule) else None
    saved: Schedule = serializer.save()
    record_configuration(KIND, saved.name, before, schedule_as_json(saved), context)
    return saved


@transaction.atomic
def save(row: Schedule, context: Context, *fields: str) -> None:
    """Keep these of its fields as they are now, all of them where none is named. Raises as `put`."""
    before = schedule_as_json(_locked(row))
    row.save(update_fields=fields or None)
    record_configuration(KIND, row.name, before, schedule_as_json(Schedule.objects.get(pk=row.pk)), context)


@transaction.atomic
def remove(row: Schedule, context: Context) -> None:
    """Its runs stay. Raises as `put`."""
    before = schedule_as_json(_locked(row))
    row.delete()
    record_configuration(KIND, row.name, before, None, context)


def schedule_as_json(row: Schedule) -> dict[str, Any]:
    """As the API takes it: not its id, nor how it stands."""
    return {
        name: value for name, value in ScheduleSerializer(row).data.items() if name not in ("id", "waits")
    }


def _locked(row: Schedule) -> Schedule:
    return Schedule.objects.select_for_update().get(pk=row.pk)
