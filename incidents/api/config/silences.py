"""Silences in a file of configuration: those that hold or are to come, each under its id."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone
from rest_framework import serializers as s
from rest_framework.serializers import BaseSerializer

from incidents.api.editable import Catalog
from incidents.api.incident.serializers import Strict
from incidents.api.suppression.views import MatcherTexts
from incidents.domain.suppression.recurrence import recurrence_from
from incidents.domain.values import rfc3339
from incidents.suppression import silences
from incidents.teams.models import Silence

YEARS = (1970, 9999)
"""As Alertmanager's API takes them: what is made there can be applied here."""


class RecurrenceFileSerializer(Strict, s.Serializer[Any]):
    rule = s.CharField(max_length=200)
    time_zone = s.CharField(max_length=60, default="UTC")
    until = s.DateTimeField()


class SilenceFileSerializer(Strict, s.Serializer[Silence]):
    """With a recurrence, `starts_at` and `ends_at` are those of the first occurrence."""

    id = s.CharField(max_length=60)
    matchers = MatcherTexts()
    starts_at = s.DateTimeField()
    ends_at = s.DateTimeField()
    comment = s.CharField(max_length=2_000)
    created_by = s.CharField(max_length=255, required=False)
    annotations = s.DictField(child=s.CharField(max_length=2_000, allow_blank=True), required=False)
    recurrence = RecurrenceFileSerializer(required=False, allow_null=True)

    def validate_id(self, text: str) -> str:
        try:
            id_ = str(uuid.UUID(text))
        except ValueError:
            raise s.ValidationError(f"must be a UUID of your own, such as {uuid.uuid4()}") from None
        if text != id_:
            raise s.ValidationError(f"must be written as {id_}")
        return text

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        again = attrs.get("recurrence") or {}
        for name, at in (*attrs.items(), *((f"recurrence.{name}", at) for name, at in again.items())):
            if isinstance(at, datetime) and not YEARS[0] <= at.year < YEARS[1]:
                raise s.ValidationError({name: [f"must be between the years {YEARS[0]} and {YEARS[1]}"]})
        return attrs

    def to_representation(self, row: Silence) -> dict[str, Any]:
        again = getattr(row, "recurrence", None)
        first = row if again is None else again
        return {
            "id": str(row.pk),
            "matchers": self.fields["matchers"].to_representation(row.matchers),
            "starts_at": rfc3339(first.starts_at),
            "ends_at": rfc3339(first.ends_at),
            "comment": row.comment,
            "created_by": row.created_by,
            **({"annotations": dict(row.annotations)} if row.annotations else {}),
            "recurrence": None
            if again is None
            else {"rule": again.rule, "time_zone": again.time_zone, "until": rfc3339(row.ends_at)},
        }


class SilencesFile(Catalog):
    """Silences in a file; those that are over are left out, and are not made where they are missing."""

    queryset = Silence.objects.select_related("recurrence").order_by("starts_at", "id")
    serializer_class = SilenceFileSerializer
    lookup_field = "id"

    def find(self, key: Sequence[str]) -> Silence | None:
        return silences.find_silence(key[0])

    def filed(self) -> Iterable[Silence]:
        now = timezone.now()
        rows = self.get_queryset().filter(ends_at__gt=now)
        return [row for row in rows if silences.state_of(row, now) in ("active", "pending")]

    def get_serializer(self, *args: Any, **kwargs: Any) -> BaseSerializer[Any]:
        """A silence is given whole: half of another one would hold what nobody meant."""
        return super().get_serializer(*args, **{**kwargs, "partial": False})

    def put(self, serializer: BaseSerializer[Silence]) -> None:
        row, given = serializer.instance, serializer.validated_data
        by = self.context.actor.partition(":")[2] if row is None else row.created_by
        wanted = silences.SilenceRequest(
            given["matchers"],
            given["starts_at"],
            given["ends_at"],
            given.get("created_by", by),
            given["comment"],
            _again(given.get("recurrence")),
            given.get("annotations"),
        )
        silences.place_silence(uuid.UUID(given["id"]), wanted, self.context)

    def perform_destroy(self, instance: Silence) -> None:
        silences.end_silence(instance, self.context)


def _again(body: Mapping[str, Any] | None) -> silences.SilenceRepeat | None:
    if body is None:
        return None
    return silences.SilenceRepeat(
        recurrence_from("recurrence", body["rule"], body["time_zone"]), body["until"]
    )
