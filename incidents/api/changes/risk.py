"""POST /api/v1/changes/risk: the risk of a change before it goes out. Needs `incidents:read`; stores nothing.

GET /api/v1/changes/risks: changes ahead and past with their risk. POST /api/v1/changes/outcomes: what became of one."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers as s
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from incidents.api.incident.views import ERRORS, MISSING, IncidentAPI, limit_of, parameters
from incidents.api.inputs import context
from incidents.changes.outcomes import OUTCOMES, record_outcome
from incidents.changes.risk import ListedChange, planned_change, risk_of, risks
from incidents.domain.values import InvalidValueError
from ingest.api.authentication import HasScope
from ingest.queries import is_component, now_utc, regions

EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


class PlannedShape(s.Serializer[Any]):
    """A planned change, in the shape of a row of `change`."""

    change = s.CharField(max_length=512, default="planned")
    time = s.DateTimeField(required=False, help_text="time of the rollout; default: now")
    kind = s.CharField(max_length=512)
    targets = s.ListField(child=s.CharField(), max_length=1000, required=False)
    author = s.CharField(max_length=512, allow_blank=True, required=False)
    team = s.CharField(max_length=512, allow_blank=True, required=False)
    settings = s.DictField(child=s.CharField(allow_blank=True), required=False)
    measures = s.DictField(child=s.FloatField(), required=False)
    region = s.CharField(
        required=False, help_text="default: the only region with telemetry; needed with several"
    )


class StepShape(s.Serializer[Any]):
    condition = s.CharField()
    changes = s.IntegerField(help_text="number of past changes that meet this condition and all earlier ones")
    bad = s.IntegerField()


class PastShape(s.Serializer[Any]):
    change = s.CharField()
    at = s.DateTimeField()
    kind = s.CharField()
    outcome = s.ChoiceField(choices=["good", "incident", "rolled_back"])


class RiskShape(s.Serializer[Any]):
    """Probability of an incident or a rollback; null with too little history, with the reason in `reason`."""

    probability = s.FloatField(allow_null=True)
    low = s.FloatField(allow_null=True, help_text="lower end of the 95 % interval")
    high = s.FloatField(allow_null=True)
    usual = s.FloatField(allow_null=True, help_text="share of bad changes in the history")
    past = s.IntegerField(help_text="changes with a known outcome")
    bad = s.IntegerField()
    reason = s.CharField()
    path = StepShape(many=True)
    reasons = s.ListField(
        child=s.CharField(), help_text="conditions that raise the odds most, with their factors"
    )
    similar = PastShape(many=True)
    trial = s.CharField(required=False, help_text="accuracy of the method on the last quarter of the history")


class ChangeRiskView(IncidentAPI):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read")]

    @extend_schema(operation_id="changes_risk", request=PlannedShape, responses={200: RiskShape, **ERRORS})
    def post(self, request: Request) -> Response:
        """Probability that a planned change ends in an incident or a rollback, with the conditions that it
        follows from and similar past changes."""
        requested = PlannedShape(data=request.data)
        requested.is_valid(raise_exception=True)
        if unknown := sorted(set(request.data) - set(requested.fields)):
            raise InvalidValueError(unknown[0][:100], "is not a field of a planned change")
        given = dict(requested.validated_data)
        if not EARLIEST <= given.get("time", EARLIEST) <= LATEST:
            raise InvalidValueError("time", f"must be from {EARLIEST:%Y} to {LATEST:%Y}")
        if wrong := [name for name, value in given.get("measures", {}).items() if not isfinite(value)]:
            raise InvalidValueError("measures", f"gives {wrong[0][:100]!r} as no finite number")
        for target in given.get("targets", ()):
            if not is_component(target):
                raise InvalidValueError("targets", f"{target[:100]!r} is not of the form kind/name")
        region = region_of(given.pop("region", ""))
        name, at, kind = given.pop("change"), given.pop("time", None) or now_utc(), given.pop("kind")
        return Response(risk_of(planned_change(name, at, kind, **given), region).as_json())


def region_of(requested: str) -> str:
    """The region asked for, or the only one. Raises InvalidValueError."""
    known = regions()
    if requested and requested not in known:
        raise InvalidValueError("region", f"no telemetry of {requested[:100]}")
    if not requested and len(known) > 1:
        raise InvalidValueError("region", f"must be one of {', '.join(known[:10])}")
    return requested or (known[0] if known else "default")


class ListedShape(s.Serializer[Any]):
    """A change with its risk. With a known outcome, the probability is the one computed from earlier
    changes; null: there was none."""

    change = s.CharField()
    at = s.DateTimeField(help_text="time of the rollout, planned or past")
    ahead = s.BooleanField(help_text="true: not rolled out yet")
    kind = s.CharField()
    team = s.CharField()
    author = s.CharField()
    targets = s.ListField(child=s.CharField())
    probability = s.FloatField(allow_null=True, help_text="probability of an incident or a rollback")
    low = s.FloatField(
        allow_null=True, help_text="lower end of the 95 % interval; null once the outcome is known"
    )
    high = s.FloatField(allow_null=True)
    path = StepShape(many=True, help_text="conditions that the tree applied; empty once the outcome is known")
    reasons = s.ListField(child=s.CharField())
    outcome = s.ChoiceField(choices=["good", "incident", "rolled_back"], allow_null=True)
    outcome_at = s.DateTimeField(
        allow_null=True, help_text="time at which the outcome became known; null before"
    )


class StatedShape(s.Serializer[Any]):
    """Past changes with a probability in [low, high): their mean, and the number of bad ones."""

    low = s.FloatField()
    high = s.FloatField()
    changes = s.IntegerField()
    bad = s.IntegerField()
    stated = s.FloatField()
    interval = s.ListField(child=s.FloatField(), help_text="95 % interval of the share of bad changes")


class RiskListShape(s.Serializer[Any]):
    past = s.IntegerField(help_text="changes with a known outcome")
    bad = s.IntegerField()
    usual = s.FloatField(allow_null=True)
    reason = s.CharField(allow_blank=True, help_text="missing data, if there are no probabilities")
    reliability = StatedShape(many=True)
    results = ListedShape(many=True)


class OutcomeShape(s.Serializer[Any]):
    change = s.CharField(max_length=512)
    outcome = s.ChoiceField(choices=OUTCOMES)
    incident = s.CharField(
        required=False, max_length=100, help_text="number or id of the incident that the change caused"
    )
    region = s.CharField(
        required=False, help_text="default: the only region with telemetry; needed with several"
    )


class RecordedShape(s.Serializer[Any]):
    change = s.CharField()
    outcome = s.ChoiceField(choices=["good", "incident", "rolled_back"])
    outcome_at = s.DateTimeField()


class ChangeRisksView(IncidentAPI):
    @extend_schema(
        operation_id="changes_risks",
        parameters=[
            OpenApiParameter(
                "region",
                str,
                description="default: the only region with telemetry; needed with several",
            ),
            OpenApiParameter("limit", int, description="1 to 200, default 50"),
        ],
        responses={200: RiskListShape, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """Future changes (next first), then past changes (newest first), with risk, conditions and
        outcome."""
        query = parameters(request, "region", "limit")
        found = risks(region_of(query.get("region", "")), now_utc())
        stated = [
            {
                "low": one.low,
                "high": one.high,
                "changes": one.changes,
                "bad": one.bad,
                "stated": one.stated,
                "interval": list(one.interval),
            }
            for one in found.reliability
        ]
        return Response(
            {
                "past": found.past,
                "bad": found.bad,
                "usual": found.usual,
                "reason": found.reason,
                "reliability": stated,
                "results": [one.as_json() for one in found.changes[: limit_of(query)]],
            }
        )


class ChangeOutcomesView(IncidentAPI):
    @extend_schema(
        operation_id="changes_record_outcome",
        request=OutcomeShape,
        responses={200: RecordedShape, **ERRORS, **MISSING},
    )
    def post(self, request: Request) -> Response:
        """Record the outcome of a change. `harmless` withdraws an earlier outcome."""
        requested = OutcomeShape(data=request.data)
        requested.is_valid(raise_exception=True)
        if unknown := sorted(set(request.data) - set(requested.fields)):
            raise InvalidValueError(unknown[0][:100], "is not a field of an outcome")
        given = dict(requested.validated_data)
        done = record_outcome(
            given["change"],
            given["outcome"],
            region_of(given.get("region", "")),
            context(request),
            given.get("incident", ""),
        )
        shown = ListedChange(done, False).as_json()
        return Response({name: shown[name] for name in ("change", "outcome", "outcome_at")})
