"""Runs and schedules as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analyzers.api.fields import SpanField
from analyzers.runs.models import Run, Schedule
from analyzers.runs.requests import LONGEST, MOST_HISTORY, InvalidRunError, RunRequest, checked_analyzer
from analyzers.runs.results import is_repeatable, late_rows, verdict
from analyzers.runs.scheduler import Wait, schedule_waits

REGION = 255  # characters


class StrictMixin:
    """Refuses fields that nobody reads: a misspelt option must not be taken for its default."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            writable = {name for name, field in self.fields.items() if not field.read_only}  # type: ignore[attr-defined]
            if unknown := sorted(set(data) - writable):
                raise serializers.ValidationError({name: ["is not a field here"] for name in unknown})
            if unfit := [name for name, value in data.items() if not _storable(value)]:
                raise serializers.ValidationError(
                    {name: ["contains characters that text cannot store"] for name in unfit}
                )
        return super().to_internal_value(data)  # type: ignore[misc]


def _storable(value: Any) -> bool:
    """Whether Postgres can keep every text in it: valid Unicode, no NUL."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\\u0000" not in text


class WindowSerializer(serializers.Serializer[Any]):
    start = serializers.DateTimeField(default_timezone=UTC)
    end = serializers.DateTimeField(default_timezone=UTC)


class WantedSerializer(StrictMixin, serializers.Serializer[Any]):
    """Body of POST /runs. Give `window`, or `length` alone for the time up to the newest telemetry."""

    analyzer = serializers.CharField()
    region = serializers.CharField(default="default", max_length=REGION)
    window = WindowSerializer(required=False)
    length = SpanField(required=False, least=timedelta(milliseconds=1), most=LONGEST)
    params = serializers.DictField(required=False, default=dict)
    input = serializers.CharField(required=False, default="", allow_blank=True)
    history = serializers.IntegerField(
        required=False, default=None, allow_null=True, min_value=0, max_value=MOST_HISTORY
    )
    report = serializers.BooleanField(
        default=True, help_text="whether its findings may open and join incidents"
    )

    def wanted(self) -> RunRequest:
        given = dict(self.validated_data)
        window = given.pop("window", {})
        return RunRequest(**given, **window)


class RunSerializer(serializers.Serializer[Run]):
    """A run, as in lists."""

    id = serializers.UUIDField()
    state = serializers.CharField(help_text="queued, running, done or failed")
    analyzer = serializers.CharField()
    version = serializers.CharField()
    params = serializers.DictField()
    region = serializers.CharField()
    input = serializers.CharField()
    schedule = serializers.CharField(source="schedule_key", allow_null=True)
    window = WindowSerializer(source="bounds")
    status = serializers.CharField(
        allow_null=True, help_text="named, quiet or inconclusive; null until judged"
    )
    reason = serializers.CharField(allow_null=True)
    error = serializers.CharField(allow_null=True)
    blamed = serializers.ListField(child=serializers.DictField(), help_text="component and score, best first")
    requested_by = serializers.CharField()
    report = serializers.BooleanField()
    repeats = serializers.UUIDField(source="repeats_id", allow_null=True)
    identical = serializers.BooleanField(
        allow_null=True, help_text="re-run: whether the verdict is the same byte by byte; null: no re-run"
    )
    attempts = serializers.IntegerField()
    seconds = serializers.FloatField(allow_null=True)
    created_at = serializers.DateTimeField(default_timezone=UTC)
    finished_at = serializers.DateTimeField(default_timezone=UTC, allow_null=True)

    def to_representation(self, instance: Run) -> dict[str, Any]:
        shown = super().to_representation(instance)
        for name in ("status", "reason", "error", "version", "input"):
            shown[name] = shown[name] or None
        return shown


class RunDetailSerializer(RunSerializer):
    """A single run, with its whole verdict, inputs, and rows that arrived too late for it."""

    verdict = serializers.SerializerMethodField()
    repeatable = serializers.SerializerMethodField(
        help_text="whether the run can be repeated: its window is stored for `DOSSIER_RUN_RETENTION` after its last use"
    )
    window_hash = serializers.CharField()
    history = serializers.ListField(
        child=serializers.DictField(), help_text="windows of the history with end and hash, oldest first"
    )
    verdict_hash = serializers.CharField()
    input_position = serializers.CharField()
    late_rows = serializers.SerializerMethodField()

    def get_verdict(self, run: Run) -> dict[str, Any] | None:
        return verdict(run)

    def get_repeatable(self, run: Run) -> bool:
        return is_repeatable(run)

    def get_late_rows(self, run: Run) -> list[dict[str, Any]]:
        return late_rows(run)


class WaitSerializer(serializers.Serializer[Wait]):
    region = serializers.CharField(help_text="empty: all regions with data")
    why = serializers.CharField()
    first_row_at = serializers.DateTimeField(
        default_timezone=UTC, allow_null=True, help_text="oldest data time of its telemetry"
    )
    first_run_at = serializers.DateTimeField(
        default_timezone=UTC,
        allow_null=True,
        help_text="expected time of the next run; null: due already or unknown",
    )


class ScheduleSerializer(StrictMixin, serializers.ModelSerializer[Schedule]):
    """Schedule of an analyzer."""

    length = SpanField(least=timedelta(seconds=1), most=LONGEST)
    every = SpanField(least=timedelta(seconds=1), most=LONGEST)
    grace = SpanField(required=False, most=timedelta(days=1))
    idle = SpanField(required=False, most=timedelta(days=1))
    waits = serializers.SerializerMethodField(
        help_text="regions in which it has never run, with reason and expected time; empty if disabled"
    )

    class Meta:
        model = Schedule
        fields = (
            "id", "name", "analyzer", "region", "input", "params", "length", "every", "grace", "idle",
            "history", "enabled", "by_arrival", "waits",
        )  # fmt: skip
        read_only_fields = ("id",)

    @extend_schema_field(WaitSerializer(many=True))
    def get_waits(self, row: Schedule) -> list[dict[str, Any]]:
        return [WaitSerializer(one).data for one in schedule_waits(row, now())]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        old = self.instance
        if isinstance(old, Schedule) and attrs.get("name", old.name) != old.name:
            raise serializers.ValidationError(
                {"name": ["cannot be changed: incidents refer to schedules by name"]}
            )
        analyzer = attrs.get("analyzer", getattr(old, "analyzer", ""))
        history = attrs.get("history", getattr(old, "history", None))
        input = attrs.get("input", getattr(old, "input", ""))
        params = attrs.get("params", getattr(old, "params", {}))
        if not isinstance(params, dict):
            raise serializers.ValidationError({"params": ["must be an object"]})
        try:
            checked_analyzer(analyzer, input, params, history)
        except InvalidRunError as bad:
            raise serializers.ValidationError({bad.field: [str(bad)]}) from bad
        return attrs


def now() -> datetime:
    return datetime.now(UTC)
