"""POST /api/v1/routes/explain and …/replay: routes tried before they count. Needs `incidents:read`; stores nothing."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework.exceptions import NotFound
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from incidents.api.incident.views import ERRORS, PROBLEM, IncidentAPI
from incidents.api.inputs import fields, sequence, time_of
from incidents.api.routing.serializers import GroupingShape, RouteSerializer
from incidents.commands import InvalidValueError
from incidents.domain.replay import COMPARED, LEFT_OUT, Difference
from incidents.domain.routing.explain import Explanation, explain
from incidents.domain.routing.rules import RoutingTable, Subject
from incidents.domain.routing.schema import grouping_json
from incidents.domain.values import SEVERITIES, optional_rfc3339, rfc3339
from incidents.routing import replay as routes
from incidents.teams.models import routing_table
from ingest.api.authentication import HasScope
from ingest.api.test_alerts import ENDPOINTS

NO_ALERT = {404: OpenApiResponse(PROBLEM, "Alert not found.")}
DAYS = 7
ROUTES = (
    "rules to try instead of the current ones, in the format of `/api/v1/routes`; `name` and"
    " `parent` form the tree"
)


class SubjectShape(s.Serializer[Any]):
    component = s.CharField(required=False, allow_null=True, help_text="kind/name")
    labels = s.DictField(child=s.CharField(), required=False)
    severity = s.ChoiceField(choices=SEVERITIES, required=False, help_text="default: warning")
    integration = s.CharField(required=False, allow_null=True)
    service = s.CharField(required=False, allow_null=True, help_text="default: service of the component")
    analyzer = s.CharField(required=False, allow_null=True)
    confidence = s.FloatField(required=False, allow_null=True, min_value=0, max_value=1)
    at = s.DateTimeField(required=False, allow_null=True, help_text="default: now")


class ToExplainShape(SubjectShape):
    alert = s.UUIDField(required=False, help_text="id of a recorded alert, instead of the other fields")
    payload = s.JSONField(
        required=False,
        help_text="request body of a sender, unchanged (mail as text): explains its first firing alert,"
        " else its first; allowed beside it: `endpoint`, `integration`, `at` and `routes`",
    )
    endpoint = s.ChoiceField(
        choices=ENDPOINTS, required=False, help_text="endpoint that reads the payload; default: generic"
    )
    routes = s.ListField(child=s.DictField(), required=False, help_text=ROUTES)


class RuleTriedShape(s.Serializer[Any]):
    rule = s.CharField()
    depth = s.IntegerField(help_text="level of the tree, from 0")
    place = s.IntegerField(help_text="position on its level, from 1")
    outcome = s.ChoiceField(choices=["matched", "did_not_match", "not_tried"])
    sentence = s.CharField()


class ExplainedShape(s.Serializer[Any]):
    """Destination of an alert, with the result of each rule of the tree."""

    subject = SubjectShape()
    path = s.ListField(child=s.CharField(), help_text="matching rules, from the first level down")
    team = s.CharField()
    service = s.CharField(allow_null=True)
    severity = s.CharField(allow_null=True, help_text="severity set by the routes; null: unchanged")
    policy = s.CharField(allow_null=True)
    grouping = GroupingShape()
    follow_suggestion = s.BooleanField(help_text="true: a predicted team, if any, would take the incident")
    explanation = s.CharField()
    rules = RuleTriedShape(many=True)
    incident = s.IntegerField(
        allow_null=True, help_text="number of the incident of the recorded alert; null: none"
    )
    alerts = s.IntegerField(allow_null=True, help_text="number of alerts in the payload; null: no payload")
    refused = s.ListField(
        child=s.CharField(), help_text="alerts of the payload that the endpoint would reject, with reasons"
    )


class ToReplayShape(s.Serializer[Any]):
    routes = RouteSerializer(many=True, help_text=ROUTES)
    days = s.IntegerField(required=False, min_value=1, max_value=90, help_text=f"default: {DAYS}, to now")
    to = s.DateTimeField(required=False, help_text="default: now")


ToReplayShape._declared_fields["from"] = s.DateTimeField(required=False, help_text="instead of `days`")


class ExampleShape(s.Serializer[Any]):
    kind = s.ChoiceField(choices=["alert", "finding", "report"])
    id = s.CharField(help_text="id of the alert, else number of the incident")
    title = s.CharField()
    component = s.CharField(allow_null=True)
    at = s.DateTimeField()
    before = s.CharField(help_text="explanation under the current rules")
    after = s.CharField(help_text="explanation under the rules that are tried")


class DifferenceShape(s.Serializer[Any]):
    what = s.ChoiceField(choices=COMPARED)
    before = s.JSONField()
    after = s.JSONField()
    count = s.IntegerField()
    examples = ExampleShape(many=True, help_text="first three")


class ReplayedShape(s.Serializer[Any]):
    """Differences in destinations."""

    start = s.DateTimeField()
    end = s.DateTimeField()
    complete = s.BooleanField(help_text=f"false: it ended after {routes.MOST_EVENTS} events, at `end`")
    alerts = s.IntegerField(help_text="number of firings")
    suppressed = s.IntegerField(
        help_text="of `alerts`: suppressed by a silence, maintenance window or inhibition"
    )
    to_cause = s.IntegerField(
        help_text="of `alerts`: joined the incident of their cause, independent of routes"
    )
    findings = s.IntegerField(help_text="number that opened an incident")
    reports = s.IntegerField(help_text="number that opened an incident")
    differ = s.IntegerField(
        help_text="number of differences among all of these, without `suppressed` and `to_cause`"
    )
    incidents_before = s.IntegerField(
        help_text="number of incidents opened by the remaining alerts, by grouping and storms"
    )
    incidents_after = s.IntegerField()
    left_out = s.ListField(
        child=s.CharField(), help_text="other influences on incidents, which are not replayed"
    )
    differences = DifferenceShape(many=True, help_text="differences by field, most frequent first")


class _Trial(IncidentAPI):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read")]


_NO_PAYLOAD: Final[dict[str, Any]] = {"alerts": None, "refused": []}


class ExplainView(_Trial):
    @extend_schema(
        operation_id="routes_explain",
        request=ToExplainShape,
        responses={200: ExplainedShape, **ERRORS, **NO_ALERT},
    )
    def post(self, request: Request) -> Response:
        """Destination of an alert, explained rule by rule: a recorded alert by its id, a pasted payload of
        a sender, or a described alert."""
        body = fields(request, ToExplainShape)
        table = _table(body)
        if "alert" in body:
            if others := sorted(set(body) - {"alert", "routes"}):
                raise InvalidValueError(others[0], "not allowed with `alert`, which determines it")
            result = _recorded(body["alert"], table)
            return Response(
                {**explained_json(result.explanation), "incident": result.incident, **_NO_PAYLOAD}
            )
        if "payload" in body:
            return Response(_pasted(body, table))
        if "endpoint" in body:
            raise InvalidValueError("endpoint", "requires a `payload`")
        subject = routes.subject_from(body, time_of("at", body.get("at")) or routes.now())
        return Response({**explained_json(explain(subject, table)), "incident": None, **_NO_PAYLOAD})


def _pasted(body: dict[str, Any], table: RoutingTable) -> dict[str, Any]:
    """A payload read as its endpoint reads it, and where its first alert goes."""
    if others := sorted(set(body) - {"payload", "endpoint", "integration", "at", "routes"}):
        raise InvalidValueError(others[0], "not allowed with `payload`, which determines it")
    at = time_of("at", body.get("at")) or routes.now()
    explanation = routes.explain_pasted(
        body.get("endpoint", "generic"), body.get("integration"), body["payload"], at, table
    )
    return {
        **explained_json(explanation.explanation),
        "incident": None,
        "alerts": explanation.alerts,
        "refused": list(explanation.refused),
    }


def _table(body: dict[str, Any]) -> RoutingTable:
    table = routing_table()
    return routes.proposed(sequence("routes", body["routes"]), table) if "routes" in body else table


def _recorded(id: object, table: RoutingTable) -> routes.Explained:
    try:
        return routes.explain_alert(str(UUID(str(id))), table)
    except ValueError:
        raise InvalidValueError("alert", "must be the id of an alert, a UUID") from None
    except routes.AlertNotFoundError as error:
        raise NotFound(f"{error}.") from None


class ReplayView(_Trial):
    @extend_schema(
        operation_id="routes_replay", request=ToReplayShape, responses={200: ReplayedShape, **ERRORS}
    )
    def post(self, request: Request) -> Response:
        """Destinations of recent alerts, findings and reports under other rules. Changes nothing."""
        body = fields(request, ToReplayShape)
        start, end = span_of(body)
        after = routes.proposed(sequence("routes", body["routes"]), routing_table())
        return Response(replayed_json(routes.replay_recorded(after, start, end)))


def span_of(body: dict[str, Any]) -> tuple[datetime, datetime]:
    """The span of `days`, or `from` and `to`. Raises InvalidValueError."""
    end = time_of("to", body.get("to")) or routes.now()
    if (start := time_of("from", body.get("from"))) is not None:
        if "days" in body:
            raise InvalidValueError("days", "not allowed with `from`")
        return start, end
    days = body.get("days", DAYS)
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= routes.LONGEST.days:
        raise InvalidValueError("days", f"must be a whole number from 1 to {routes.LONGEST.days}")
    try:
        return end - timedelta(days=days), end
    except OverflowError:
        raise InvalidValueError("to", "is too early") from None


def explained_json(explanation: Explanation) -> dict[str, Any]:
    routing = explanation.routing
    return {
        "subject": _subject_json(explanation.subject),
        "path": list(routing.path),
        "team": routing.team,
        "service": routing.service,
        "severity": routing.severity,
        "policy": routing.policy,
        "grouping": grouping_json(routing.grouping),
        "follow_suggestion": routing.follow_suggestion,
        "explanation": routing.explanation,
        "rules": [asdict(one) for one in explanation.rules],
    }


def _subject_json(subject: Subject) -> dict[str, Any]:
    entry = {name: getattr(subject, name) for name in routes.SUBJECT}
    return {**entry, "labels": dict(subject.labels), "at": optional_rfc3339(subject.at)}


def replayed_json(replayed: routes.Replayed) -> dict[str, Any]:
    result = replayed.result
    return {
        "start": rfc3339(replayed.start),
        "end": rfc3339(replayed.end),
        "complete": replayed.complete,
        "alerts": result.looked_at.get("alert", 0),
        "findings": result.looked_at.get("finding", 0),
        "reports": result.looked_at.get("report", 0),
        "suppressed": result.suppressed,
        "to_cause": result.to_cause,
        "differ": result.differ,
        "incidents_before": result.incidents_before,
        "incidents_after": result.incidents_after,
        "left_out": list(LEFT_OUT),
        "differences": [_difference_json(one) for one in result.differences],
    }


def _difference_json(one: Difference) -> dict[str, Any]:
    difference = asdict(one)
    for example in difference["examples"]:
        example["at"] = rfc3339(example["at"])
    return difference
