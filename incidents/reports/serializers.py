"""Report schedules and subscriptions as the API reads and writes them."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers as s

from analyzers.commands import InvalidParameterError, check_params
from analyzers.queries import analyzers
from incidents.api.incident.serializers import Strict
from incidents.reports.models import ReportSchedule, Subscription
from incidents.reports.periods import is_zone
from incidents.teams.models import Team

MOST_ANALYSES = 20


class ReportScheduleSerializer(Strict, s.ModelSerializer[ReportSchedule]):
    class Meta:
        model = ReportSchedule
        fields = ("name", "title", "cadence", "region", "team", "zone", "hour", "analyses", "enabled")
        extra_kwargs: ClassVar[dict[str, Any]] = {
            "hour": {"help_text": "hours from the end of a period to its report, 0 to 23"},
            "zone": {"help_text": "IANA time zone, such as Europe/Berlin"},
        }

    def validate_zone(self, zone: str) -> str:
        if not is_zone(zone):
            raise s.ValidationError(f"{zone[:60]!r} is no time zone; give one such as Europe/Berlin or UTC")
        return zone

    def validate_team(self, team: str) -> str:
        if team and not Team.objects.filter(slug=team).exists():
            raise s.ValidationError(f"there is no team {team[:60]!r}")
        return team

    def validate_analyses(self, analyses: Any) -> list[dict[str, Any]]:
        known = analyzers()
        if not isinstance(analyses, list) or len(analyses) > MOST_ANALYSES:
            raise s.ValidationError(f"must be a list of at most {MOST_ANALYSES} analyses")
        for one in analyses:
            if not isinstance(one, dict) or set(one) - {"analyzer", "params"} or "analyzer" not in one:
                raise s.ValidationError('each is {"analyzer": name, "params": {}}')
            if not isinstance(one["analyzer"], str) or one["analyzer"] not in known:
                raise s.ValidationError(
                    f"{str(one['analyzer'])[:60]!r} is not installed; there are {sorted(known)}"
                )
            if not isinstance(one.get("params", {}), dict):
                raise s.ValidationError("params must be an object")
            try:
                check_params(known[one["analyzer"]], one.get("params", {}))
            except InvalidParameterError as error:
                raise s.ValidationError(str(error)) from error
        return analyses


class SubscriptionSerializer(Strict, s.ModelSerializer[Subscription]):
    schedule = s.SlugRelatedField(slug_field="name", queryset=ReportSchedule.objects.all())

    class Meta:
        model = Subscription
        fields = ("id", "schedule", "address", "since")
        read_only_fields = ("since",)
