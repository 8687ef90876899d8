"""One action on several incidents over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from incidents import queries
from incidents.api.incident import serializers as shapes
from incidents.api.incident.views import ERRORS, IF_MATCH, SEARCH, IncidentAPI
from incidents.api.inputs import checked, context, fields, reference, sequence, time_of
from incidents.bulk import MOST_AT_ONCE, OWN, Done, NotDone, act_on, matching
from incidents.commands import InvalidValueError
from incidents.domain.incident.bulk import BACK, VERBS
from incidents.domain.values import check_line, check_text
from incidents.search import query as search
from incidents.search.filters import ORDERS

SHAPES: Mapping[str, type[s.Serializer[Any]]] = {
    "acknowledge": shapes.NothingShape,
    "unacknowledge": shapes.NothingShape,
    "assign": shapes.AssignShape,
    "hand_over": shapes.HandOverShape,
    "snooze": shapes.SnoozeShape,
    "set_severity": shapes.SetSeverityShape,
    "resolve": shapes.ResolveShape,
    "reopen": shapes.ReopenShape,
    "escalate": shapes.EscalateShape,
    "merge": shapes.MergeShape,
    "undo": shapes.UndoShape,
    "silence": shapes.SilenceIncidentShape,
    "end_silence": shapes.EndSilenceShape,
}
"""The fields of each action, as for one incident."""
READ: Mapping[str, Callable[[str, Any], Any]] = {"until": time_of, "into": reference}
ACTIONS = (*VERBS, *(verb for verb in BACK if verb not in VERBS))


class BulkShape(s.Serializer[Any]):
    action = s.ChoiceField(choices=ACTIONS)
    incidents = s.ListField(
        child=s.CharField(), required=False, help_text=f"ids or numbers, at most {MOST_AT_ONCE:,}"
    )
    search = s.CharField(
        max_length=1000,
        required=False,
        help_text=f"instead of `incidents`: the first {MOST_AT_ONCE:,} matches, {SEARCH}",
    )
    order = s.ChoiceField(
        choices=list(ORDERS),
        required=False,
        help_text="order in which incidents of a search are selected; default: newest",
    )
    fields = s.DictField(  # type: ignore[assignment]
        required=False,
        help_text="fields of the action, as for one incident; `confirmed_cause` may also be"
        f" `{OWN}`: the component of each incident",
    )


class StepShape(s.Serializer[Any]):
    action = s.CharField()
    fields = s.DictField()  # type: ignore[assignment]


class ResultShape(s.Serializer[Any]):
    incident = s.CharField(help_text="id or number, as in the request")
    status = s.IntegerField(help_text="200, 400, 403, 404 or 409, as for the action on this incident alone")
    id = s.CharField(allow_null=True)
    number = s.IntegerField(allow_null=True)
    position = s.CharField(allow_null=True, help_text="log position of the incident after the action")
    reason = s.CharField(allow_null=True, help_text="reason for the refusal")
    undo = StepShape(allow_null=True, help_text="action and fields that undo it, for a request here")


class BulkResultShape(s.Serializer[Any]):
    done = s.IntegerField()
    refused = s.IntegerField()
    more = s.BooleanField(help_text="true: the search matches further incidents")
    results = ResultShape(many=True)


class BulkView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_several",
        parameters=[IF_MATCH],
        request=BulkShape,
        responses={
            200: OpenApiResponse(BulkResultShape, "A result for each incident, even if all were refused."),
            **ERRORS,
        },
    )
    def post(self, request: Request) -> Response:
        """Run one action on several incidents, each decided and recorded separately. 400: nothing was
        done. A request without an answer may be repeated: incidents with the action already done refuse
        it."""
        body = fields(request, BulkShape)
        action = body["action"]
        if not isinstance(action, str) or action not in SHAPES:
            raise InvalidValueError("action", f"must be one of {', '.join(ACTIONS)}")
        wanted = _fields(action, body.get("fields", {}))
        named, more = _selection(request, body)
        try:
            outcome = act_on(named, action, wanted, context(request))
        except InvalidValueError as error:
            where = f"fields.{error.field}" if error.field in wanted else error.field
            raise InvalidValueError(where, error.reason) from None
        results = [_done(one) for one in outcome.done] + [_refused(one) for one in outcome.refused]
        counts = {"done": len(outcome.done), "refused": len(outcome.refused)}
        return Response({**counts, "more": more, "results": results})


def _fields(action: str, given: object) -> dict[str, Any]:
    """Errors name `fields.reason`, where it stands in the body."""
    if not isinstance(given, dict):
        raise InvalidValueError("fields", "must be an object")
    found = checked(given, SHAPES[action], within="fields.")
    return {
        name: READ[name](f"fields.{name}", value) if name in READ else value for name, value in found.items()
    }


def _selection(request: Request, body: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The incidents that a body names, and whether its search fits more of them."""
    if ("incidents" in body) == ("search" in body):
        raise InvalidValueError("incidents", "give either `incidents` or `search`")
    if "incidents" not in body:
        numbers, more = matching(_found(request, body["search"]), _order(body.get("order", "newest")))
        return [str(number) for number in numbers], more
    named = [_name(one) for one in sequence("incidents", body["incidents"])]
    if not 1 <= len(named) <= MOST_AT_ONCE:
        raise InvalidValueError("incidents", f"must be 1 to {MOST_AT_ONCE:,} at once")
    return named, False


def _name(given: object) -> str:
    number = isinstance(given, int) and not isinstance(given, bool)
    return str(given)[:100] if number else check_line("incidents", given)


def _order(given: object) -> str:
    if not isinstance(given, str) or given not in ORDERS:
        raise InvalidValueError("order", f"must be one of {', '.join(ORDERS)}")
    return given


def _found(request: Request, given: object) -> list[queries.Filter]:
    me = None if request.auth is not None else request.user.get_username()
    found = search.search_query(check_text("search", given, 1000), timezone.now(), me, queries.team_slugs())
    if found.problems:
        raise InvalidValueError("search", "; ".join(map(str, found.problems))[:1000])
    if not found.filters:
        raise InvalidValueError("search", "must not be empty: it would match every incident")
    return list(found.filters)


def _done(one: Done) -> dict[str, Any]:
    undo = one.undo and {"action": one.undo.verb, "fields": dict(one.undo.fields)}
    known = {"id": one.id, "number": one.number, "position": one.position}
    return {"incident": str(one.number), "status": 200, **known, "reason": None, "undo": undo}


def _refused(one: NotDone) -> dict[str, Any]:
    unknown = {"id": None, "number": None, "position": None}
    return {"incident": one.reference, "status": one.status, **unknown, "reason": one.reason, "undo": None}
