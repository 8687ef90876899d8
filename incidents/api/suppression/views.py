"""Maintenance windows and inhibition rules over HTTP: what holds alerts back by plan. Written by `admin`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

from django.utils import timezone
from rest_framework import serializers as s
from rest_framework.serializers import BaseSerializer

from incidents.api.editable import BySlug, Catalog
from incidents.api.incident.serializers import Strict
from incidents.domain.routing.rules import read_matchers
from incidents.domain.suppression.recurrence import Recurrence, Span, recurrence_from, times_from
from incidents.domain.suppression.rules import (
    MOST_PATTERNS,
    each_matcher,
    equal_from,
    matchers_from,
    mode_from,
    patterns_from,
)
from incidents.domain.values import InvalidValueError, check_text
from incidents.incident.repository import keep_reactor_out
from incidents.suppression.models import InhibitionRule, MaintenanceWindow
from incidents.suppression.suppressor import refill
from incidents.teams.models import Service

LONGEST = timedelta(days=366)
"""Of a window that does not recur."""
YEARS = (2000, 2200)
T = TypeVar("T")


def checked(field: str, check: Callable[[], T]) -> T:
    """Result of a check of the domain; a refusal is under the field's name."""
    try:
        return check()
    except InvalidValueError as invalid:
        name = invalid.field if invalid.field.partition(".")[0].partition("[")[0] == field else field
        raise s.ValidationError({name: [invalid.reason]}) from None


def _matchers(field: str, value: object, *, least: int) -> list[dict[str, Any]]:
    """Matchers out of a list of texts such as `disk=~"d.*"`."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise s.ValidationError({field: ['must be a list of matchers such as ["disk=~\\"d.*\\""]']})
    if not value and not least:
        return []
    read = [one for text in value for one in checked(field, lambda text=text: read_matchers(text))]  # type: ignore[misc]
    return [one.as_json() for one in checked(field, lambda: matchers_from(read))]


class MatcherTexts(s.ListField):
    """Matchers as Alertmanager's configuration writes them, one text each."""

    child = s.CharField(max_length=1_500)

    def to_representation(self, data: Any) -> list[str]:
        try:
            return [str(one) for one in each_matcher(data)] if data else []
        except InvalidValueError:
            return [
                json.dumps(data)
            ]  # as it is kept: what cannot be read is shown, with the problem beside it

    def to_internal_value(self, data: Any) -> list[dict[str, Any]]:
        fields = super().to_internal_value(data)
        try:
            return _matchers("matchers", fields, least=0)
        except s.ValidationError as refused:
            raise s.ValidationError(next(iter(refused.detail.values()))) from None  # type: ignore[union-attr]


def _texts(field: str, check: Callable[[object], tuple[str, ...]], value: object) -> list[str]:
    try:
        return list(check(value))
    except InvalidValueError as invalid:
        place = invalid.field.removeprefix(field)
        raise s.ValidationError(f"{place} {invalid.reason}".strip()) from None


def _text(field: str, value: object, most: int, *, blank: bool) -> str:
    try:
        return check_text(field, value, most, blank=blank)
    except InvalidValueError as invalid:
        raise s.ValidationError(invalid.reason) from None


class MaintenanceSerializer(Strict, s.ModelSerializer[MaintenanceWindow]):
    """With `rule` and `time_zone` the window recurs: `starts_at` and `ends_at` are those of the first
    occurrence."""

    matchers = MatcherTexts(required=False, help_text='matchers that must all match, such as `env="test"`')
    components = s.ListField(
        child=s.CharField(max_length=200),
        required=False,
        help_text="patterns such as tor/dc1-*, of which one must match",
    )
    services = s.ListField(
        child=s.CharField(max_length=60),
        required=False,
        help_text="slugs of services whose components are in maintenance",
    )
    mode = s.ChoiceField(
        choices=("hold", "quiet"),
        required=False,
        help_text="hold: alerts open no incident until it ends; quiet: alerts open incidents that are"
        " snoozed until it ends",
    )
    rule = s.CharField(
        max_length=200,
        required=False,
        allow_blank=True,
        help_text="recurrence rule of RFC 5545, such as FREQ=WEEKLY;BYDAY=SU",
    )
    time_zone = s.CharField(max_length=60, required=False, help_text="time zone of the rule")
    state = s.SerializerMethodField(help_text="active, pending, over or unreadable")
    problem = s.SerializerMethodField(
        help_text="reason why it is unreadable and suppresses nothing; null: readable"
    )
    next_starts_at = s.SerializerMethodField()
    next_ends_at = s.SerializerMethodField()

    class Meta:
        model = MaintenanceWindow
        fields = (
            "slug",
            "reason",
            "components",
            "services",
            "matchers",
            "starts_at",
            "ends_at",
            "rule",
            "time_zone",
            "mode",
            "state",
            "problem",
            "next_starts_at",
            "next_ends_at",
        )

    def get_problem(self, row: MaintenanceWindow) -> str | None:
        return row.problem(timezone.now())

    def get_state(self, row: MaintenanceWindow) -> str:
        now = timezone.now()
        if row.problem(now) is not None:
            return "unreadable"
        return "active" if row.times.at(now) else "over" if row.times.over(now) else "pending"

    def get_next_starts_at(self, row: MaintenanceWindow) -> datetime | None:
        """Begin of the window that holds now, else of the next one."""
        span = _next(row)
        return None if span is None else span.starts_at

    def get_next_ends_at(self, row: MaintenanceWindow) -> datetime | None:
        span = _next(row)
        return None if span is None else span.ends_at

    def validate_reason(self, text: str) -> str:
        return _text("reason", text, 2_000, blank=False)

    def validate_components(self, entries: list[str]) -> list[str]:
        return _texts("components", patterns_from, entries)

    def validate_services(self, entries: list[str]) -> list[str]:
        if len(entries) > MOST_PATTERNS:
            raise s.ValidationError(f"must be at most {MOST_PATTERNS}")
        known = set(Service.objects.filter(slug__in=entries).values_list("slug", flat=True))
        for one in entries:
            if one not in known:
                raise s.ValidationError(f"there is no service {one!r}")
        return entries

    def validate_mode(self, text: str) -> str:
        return mode_from(text)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        def value(name: str, default: Any) -> Any:
            return attrs.get(name, default if self.instance is None else getattr(self.instance, name))

        if not any(value(name, []) for name in ("components", "services", "matchers")):
            raise s.ValidationError({"components": ["components, services or matchers are required"]})
        starts, ends = value("starts_at", None), value("ends_at", None)
        for name, at in (("starts_at", starts), ("ends_at", ends)):
            if not YEARS[0] <= at.year < YEARS[1]:
                raise s.ValidationError({name: [f"must be between the years {YEARS[0]} and {YEARS[1]}"]})
        if ends <= starts:
            raise s.ValidationError({"ends_at": ["must be later than the start"]})
        rule, zone = value("rule", ""), value("time_zone", "UTC")
        again = checked("rule", lambda: _recurrence(rule, zone))
        if again is None and ends - starts > LONGEST:
            raise s.ValidationError({"ends_at": [f"must be at most {LONGEST.days} days after the start"]})
        checked("ends_at" if again is None else "rule", lambda: times_from(starts, ends, again))
        return {**attrs, "rule": "" if again is None else again.rule, "time_zone": zone}


def _next(row: MaintenanceWindow) -> Span | None:
    now = timezone.now()
    return None if row.problem(now) is not None else row.times.at(now) or row.times.after(now)


def _recurrence(rule: str, zone: str) -> Recurrence | None:
    """The zone is checked also where nothing recurs, for it is kept."""
    found = recurrence_from("recurrence", rule or "FREQ=DAILY", zone)
    return found if rule.strip() else None


class InhibitionSerializer(Strict, s.ModelSerializer[InhibitionRule]):
    """An entry of `inhibit_rules` in the format of Alertmanager, with a name."""

    source_matchers = MatcherTexts(
        help_text='matchers of the muting alert, such as ["severity=\\"critical\\""]'
    )
    target_matchers = MatcherTexts(help_text="matchers of the muted alert")
    equal = s.ListField(
        child=s.CharField(max_length=255),
        required=False,
        help_text="labels whose values must be equal in both alerts",
    )

    problem = s.SerializerMethodField(
        help_text="reason why it is unreadable and mutes nothing; null: readable"
    )

    class Meta:
        model = InhibitionRule
        fields = ("slug", "source_matchers", "target_matchers", "equal", "comment", "problem")
        extra_kwargs: ClassVar[dict[str, Any]] = {"comment": {"required": False}}

    def get_problem(self, row: InhibitionRule) -> str | None:
        return row.problem

    def validate_source_matchers(self, entries: list[Any]) -> list[Any]:
        return self._some(entries)

    def validate_target_matchers(self, entries: list[Any]) -> list[Any]:
        return self._some(entries)

    def _some(self, entries: list[Any]) -> list[Any]:
        if not entries:
            raise s.ValidationError('must hold at least one matcher such as severity="critical"')
        return entries

    def validate_equal(self, entries: list[str]) -> list[str]:
        return _texts("equal", equal_from, entries)

    def validate_comment(self, text: str) -> str:
        return _text("comment", text, 2_000, blank=True)


class SuppressionCatalog(Catalog):
    """Suppression rules. A change is a new edition: alerts suppressed by the older one are looked at again. A change
    is a new edition: what the older one held is looked at again."""

    pagination_class = BySlug
    lookup_field = "slug"

    def hold(self) -> None:
        keep_reactor_out()

    def keep(self, serializer: BaseSerializer[Any]) -> None:
        serializer.save(edition=uuid.uuid4())

    def _as_json(self, instance: Any) -> dict[str, Any]:
        """Configuration of a rule, without its present state."""
        passing = ("state", "problem", "next_starts_at", "next_ends_at")
        return {name: value for name, value in super()._as_json(instance).items() if name not in passing}


class MaintenanceView(SuppressionCatalog):
    """Planned work: alerts on what is worked on call nobody until it ends."""

    kind = "maintenance"
    queryset = MaintenanceWindow.objects.all()
    serializer_class = MaintenanceSerializer


class InhibitionsView(SuppressionCatalog):
    """While some alerts fire, others call nobody."""

    kind = "inhibition"
    queryset = InhibitionRule.objects.all()
    serializer_class = InhibitionSerializer

    def keep(self, serializer: BaseSerializer[Any]) -> None:
        super().keep(serializer)
        row: Any = serializer.instance
        refill(row)
