"""All configuration, and a file of it against the recorded past over HTTP."""

from __future__ import annotations

import json
from typing import Any, Final

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from incidents.api.config.replay import Limits, replay_configuration
from incidents.api.config.sections import FILED
from incidents.api.config.views import Catalogs
from incidents.api.editable import Catalog
from incidents.api.incident.views import ERRORS, IncidentAPI
from incidents.api.inputs import context, fields
from incidents.api.routing.preview import span_of
from incidents.api.urls import router
from incidents.domain.config.yaml import InvalidConfigurationError, read
from incidents.domain.values import InvalidValueError
from incidents.reports.filing import SubscriptionsFile
from incidents.reports.views import ReportSchedulesView
from ingest.api.authentication import HasScope
from ingest.api.keys import ADMIN

MOST_WINDOWS: Final = 500
"""Windows of each schedule that one request judges."""


def configured() -> Catalogs:
    """Catalogs of the API's configuration, by the name of their address."""
    served = {prefix: view for prefix, view, _ in router.registry if issubclass(view, Catalog)}
    reports = {"report_schedules": ReportSchedulesView, "report_subscriptions": SubscriptionsFile}
    return {**served, **FILED, **reports}


class EstimateShape(s.Serializer[Any]):
    value = s.FloatField()
    low = s.FloatField(help_text="of the 95 % interval")
    high = s.FloatField()


class CallsShape(s.Serializer[Any]):
    before = s.IntegerField(help_text="calls of people by the configuration in force")
    after = s.IntegerField()
    more = s.IntegerField(help_text="of incidents that have more")
    fewer = s.IntegerField(help_text="of incidents that have fewer")
    net = EstimateShape()


class RightTeamShape(s.Serializer[Any]):
    incidents = s.IntegerField(help_text="resolved with a confirmed cause")
    earlier = s.IntegerField(help_text="at the right team earlier than now")
    later = s.IntegerField()
    minutes = EstimateShape(
        help_text="change of the mean minutes until the right team has it; negative: earlier"
    )


class MissedShape(s.Serializer[Any]):
    incidents = s.IntegerField(help_text="with a confirmed cause, called somebody and would call nobody")
    of = s.IntegerField()
    share = s.FloatField(allow_null=True)
    low = s.FloatField(help_text="of the 95 % interval of Wilson")
    high = s.FloatField()


class PersonCallsShape(s.Serializer[Any]):
    person = s.CharField()
    before = s.IntegerField(help_text="calls by the configuration in force")
    after = s.IntegerField()


class KnownShape(s.Serializer[Any]):
    incidents = s.IntegerField(help_text="number of incidents with a confirmed cause, known before and after")
    earlier = s.IntegerField()
    later = s.IntegerField()
    minutes = EstimateShape(help_text="change of the mean time at which they are known; negative: earlier")


class AnalyzerMissedShape(MissedShape):
    incidents = s.IntegerField(help_text="number of incidents that would not have been known")
    numbers = s.ListField(child=s.IntegerField())


class AnalyzerComparedShape(s.Serializer[Any]):
    calls = CallsShape(help_text="of incidents that the analyzer alone opens")
    known = KnownShape()
    missed = AnalyzerMissedShape()
    gained = s.IntegerField(help_text="incidents that nobody knows of now")


class AnalyzerReplayShape(s.Serializer[Any]):
    schedule = s.CharField()
    before = s.DictField(allow_null=True, help_text="backtest; null: the schedule does not run")
    after = s.DictField(allow_null=True)
    compared = AnalyzerComparedShape(allow_null=True)
    versions = s.CharField(allow_null=True, help_text="`before` has recorded verdicts of these versions")
    reason = s.CharField(allow_null=True, help_text="reason for a missing comparison; null: compared")


class ConfigurationReplayShape(s.Serializer[Any]):
    changes = s.ListField(
        child=s.DictField(), help_text="kind, key, before, after, as `config diff` prints them"
    )
    start = s.DateTimeField()
    end = s.DateTimeField()
    complete = s.BooleanField(help_text="false: reading stopped at `end`, after 50,000 events")
    incidents = s.IntegerField(
        help_text="number of incidents opened in the span, or by one of the configurations"
    )
    never_opened = s.IntegerField(
        help_text="number of incidents that no longer open: suppressed until their alerts end"
    )
    opened_anew = s.IntegerField(
        help_text="number of incidents that newly open: suppressed now, not by the file"
    )
    calls = CallsShape()
    people = PersonCallsShape(many=True)
    right_team = RightTeamShape()
    missed = MissedShape()
    examples = s.DictField(help_text="first three incidents by more, fewer, earlier, later and missed")
    analyzers = AnalyzerReplayShape(many=True, help_text="schedules that differ")
    left_out = s.ListField(child=s.CharField(), help_text="influences that are not replayed")
    exceeded = s.ListField(child=s.CharField(), help_text="exceeded thresholds")


class ToReplayShape(s.Serializer[Any]):
    """A span of at most 90 days: `days` (default 7), or `from` and `to`."""

    configuration = s.JSONField(help_text="a file of configuration: its text, or the same as an object")
    days = s.IntegerField(required=False)
    to = s.DateTimeField(required=False)
    prune = s.BooleanField(required=False, help_text="remove what the lists of the file lack")
    max_more_calls = s.IntegerField(
        required=False, help_text="more net calls than that are listed in `exceeded`"
    )
    max_missed = s.IntegerField(required=False, help_text="more missed incidents than that are, too")
    max_later_minutes = s.IntegerField(
        required=False,
        help_text="as is a mean that is more minutes later until the right team has an incident",
    )
    versions = s.BooleanField(
        required=False,
        help_text="compare recorded verdicts of earlier versions of analyzers with the installed",
    )

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "from": s.DateTimeField(required=False)}


class ConfigurationReplayView(IncidentAPI):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope(ADMIN)]

    @extend_schema(
        operation_id="configuration_replay",
        request=ToReplayShape,
        responses={
            200: OpenApiResponse(ConfigurationReplayShape, "Compared. Nothing was changed."),
            **ERRORS,
        },
    )
    def post(self, request: Request) -> Response:
        """Compare a file of configuration with the one in force over recorded incidents: calls more and fewer, minutes
        to the right team, incidents missed. Changes nothing."""
        body = fields(request, ToReplayShape)
        limits = Limits(
            *(
                threshold(name, body.get(name))
                for name in ("max_more_calls", "max_missed", "max_later_minutes")
            )
        )
        prune, versions = (flag(name, body.get(name, False)) for name in ("prune", "versions"))
        catalogs = configured()
        given = body["configuration"]
        try:
            document = read(given if isinstance(given, str) else json.dumps(given), list(catalogs))
            found = replay_configuration(
                document,
                catalogs,
                context(request),
                span_of(body),
                prune=prune,
                versions=versions,
                most_windows=MOST_WINDOWS,
            )
        except InvalidConfigurationError as error:
            raise InvalidValueError("configuration", "; ".join(map(str, error.faults))[:2_000]) from None
        return Response({**found.as_json(), "exceeded": found.exceeded(limits)})


def flag(field: str, given: object) -> bool:
    """Raises InvalidValueError."""
    if not isinstance(given, bool):
        raise InvalidValueError(field, "must be true or false")
    return given


def threshold(field: str, given: object) -> int | None:
    """A whole number from 0; None where it is not given. Raises InvalidValueError."""
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and given >= 0):
        return given
    raise InvalidValueError(field, "must be a whole number from 0")
