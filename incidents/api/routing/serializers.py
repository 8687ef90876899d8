"""Shapes of routes and services: what is written, checked by `domain.rule_form`, and what is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from incidents.api.incident.serializers import Strict, line
from incidents.domain.routing import schema
from incidents.domain.routing.rules import Grouping
from incidents.domain.values import SEVERITIES, InvalidValueError
from incidents.teams.models import Route, Service, Team

MOST_PATTERNS = 200
T = TypeVar("T")


def checked(field: str, read: Callable[[], T]) -> T:
    """Result of `read`, or the serializer's own refusal of `field`."""
    try:
        return read()
    except InvalidValueError as invalid:
        inner = invalid.field.removeprefix(field).lstrip(".")
        raise s.ValidationError(
            {field: [f"{inner}: {invalid.reason}" if inner else invalid.reason]}
        ) from None


class WhenShape(s.Serializer[Any]):
    """Conditions of a rule besides its pattern; all must hold. Absent conditions always hold."""

    labels = s.ListField(
        child=s.CharField(),
        required=False,
        help_text='matchers in the format of silences, such as `env!="dev"`',
    )
    service = s.CharField(required=False, help_text="slug of the service of the component")
    analyzer = s.CharField(required=False, help_text="name of the analyzer of a finding")
    integration = s.CharField(required=False, help_text="integration of an alert")
    severities = s.ListField(child=s.CharField(), required=False, help_text=f"any of {', '.join(SEVERITIES)}")
    min_confidence = s.FloatField(
        min_value=0, max_value=1, required=False, help_text="confidence of a finding"
    )
    hours = s.ListField(
        child=s.CharField(), required=False, help_text="such as `mon-fri 09:00-17:00` or `22:00-06:00`"
    )
    zone = s.CharField(required=False, help_text="time zone of `hours`, such as Europe/Berlin; default UTC")


class GroupingShape(s.Serializer[Any]):
    """Grouping: the alerts that share an incident."""

    by = s.ListField(
        child=s.CharField(),
        allow_null=True,
        required=False,
        help_text="alerts with equal values of these labels form a group; `component`, `service`,"
        ' `integration` and `rule` need no label; []: all alerts of the route; ["..."]: each'
        " alert alone; null: alerts of one alert rule",
    )
    window_seconds = s.IntegerField(
        min_value=schema.SHORTEST_WINDOW,
        max_value=schema.LONGEST_WINDOW,
        allow_null=True,
        required=False,
        help_text="time after opening in which an incident accepts new alerts; null: while open",
    )


@extend_schema_field(WhenShape)
class WhenField(s.JSONField):
    pass


@extend_schema_field(GroupingShape)
class GroupingField(s.JSONField):
    pass


class RouteSerializer(Strict, s.ModelSerializer[Route]):
    """A rule of the tree. Null or absent fields are inherited from the parent rule."""

    name = s.SlugField(max_length=60, required=False, help_text="default: derived from the pattern")
    parent = s.SlugRelatedField(  # type: ignore[assignment]  # as Field calls its own
        slug_field="name",
        queryset=Route.objects.all(),
        allow_null=True,
        required=False,
        help_text="name of the parent rule; null: first level",
    )
    order = s.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        required=False,
        help_text="position among its siblings; default: last",
    )
    pattern = s.CharField(
        max_length=schema.PATTERN_LIMIT,
        allow_blank=True,
        required=False,
        help_text="glob over components, such as `storage_cluster/*`; empty: any component, or none",
    )
    when = WhenField(required=False)
    team = s.SlugRelatedField(slug_field="slug", queryset=Team.objects.all(), allow_null=True, required=False)
    service = s.SlugRelatedField(
        slug_field="slug",
        queryset=Service.objects.all(),
        allow_null=True,
        required=False,
        help_text="slug of the service; null: that of the component",
    )
    severity = s.ChoiceField(
        choices=SEVERITIES, allow_null=True, required=False, help_text="severity instead of that of the alert"
    )
    policy = s.CharField(
        max_length=60, allow_null=True, required=False, help_text="slug of the escalation policy"
    )
    grouping = GroupingField(allow_null=True, required=False)
    follow_suggestion = s.BooleanField(
        allow_null=True,
        required=False,
        help_text="true: an untouched incident is reassigned once to its predicted team",
    )

    class Meta:
        model = Route
        fields = ("id", *schema.FIELDS)

    def validate_name(self, name: str) -> str:
        taken = Route.objects.filter(name=name)
        if (taken if self.instance is None else taken.exclude(pk=self.instance.pk)).exists():
            raise s.ValidationError(f"`{name}` is the name of another rule")
        return _own(lambda: schema.check_name("", name))

    def validate_pattern(self, pattern: str) -> str:
        return _own(lambda: schema.check_pattern("", pattern, blank=True))

    def validate_policy(self, policy: str | None) -> str | None:
        return _own(lambda: schema.check_slug("", policy)) if policy else None

    def validate_when(self, when: object) -> dict[str, Any]:
        return schema.when_json(checked("when", lambda: schema.conditions_from("", when)))

    def validate_grouping(self, grouping: object) -> dict[str, Any] | None:
        read: Grouping | None = checked("grouping", lambda: schema.grouping_from(grouping))
        return schema.grouping_json(read)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if self.instance is None and "name" not in attrs:
            team = attrs.get("team")
            name = schema.suggested_name(attrs.get("pattern", ""), team.slug if team else "", 1)
            attrs["name"] = schema.free_name(name, set(Route.objects.values_list("name", flat=True)))
        return attrs


class ServiceSerializer(Strict, s.ModelSerializer[Service]):
    """A service of a team, with the components that belong to it."""

    slug = s.SlugField(max_length=60)
    team = s.SlugRelatedField(
        slug_field="slug",
        queryset=Team.objects.all(),
        allow_null=True,
        required=False,
        help_text="team for its incidents if no route names one",
    )
    patterns = s.ListField(
        child=s.CharField(max_length=schema.PATTERN_LIMIT),
        max_length=MOST_PATTERNS,
        required=False,
        help_text="globs over components; if several services match, the most specific pattern wins",
    )
    depends_on = s.SlugRelatedField(
        slug_field="slug",
        queryset=Service.objects.all(),
        many=True,
        required=False,
        help_text="slugs of services that it requires",
    )

    class Meta:
        model = Service
        fields = ("slug", "name", "description", "team", "patterns", "depends_on")

    def validate_slug(self, slug: str) -> str:
        taken = Service.objects.filter(slug=slug)
        if (taken if self.instance is None else taken.exclude(pk=self.instance.pk)).exists():
            raise s.ValidationError(f"`{slug}` is the slug of another service")
        return _own(lambda: schema.check_slug("", slug))

    def validate_name(self, name: str) -> str:
        return line("name", name)

    def validate_patterns(self, patterns: list[str]) -> list[str]:
        return [_own(lambda one=one: schema.check_pattern("", one)) for one in dict.fromkeys(patterns)]  # type: ignore[misc]

    def validate_depends_on(self, services: list[Service]) -> list[Service]:
        if self.instance in services:
            raise s.ValidationError("it cannot depend on itself")
        return services

    def to_representation(self, instance: Service) -> dict[str, Any]:
        fields: Mapping[str, Any] = super().to_representation(instance)
        return {**fields, "depends_on": sorted(fields["depends_on"])}


def _own(read: Callable[[], str]) -> str:
    try:
        return read()
    except InvalidValueError as invalid:
        raise s.ValidationError(invalid.reason) from None
