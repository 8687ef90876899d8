"""Opsgenie's Alert API for what sends to it: `/v2/alerts`, with the integration key as the GenieKey.

Paths, shapes and status codes follow https://docs.opsgenie.com/docs/alert-api. There a request is only queued when it
is answered; here what was answered with 202 is committed, and the request's id is its receipt.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from msgspec import UNSET

from incidents import commands, queries
from incidents.alerts.receipts import outcomes_of, receipt_of
from incidents.api.alerts.opsgenie_shapes import (
    Accepted,
    AlertAnswer,
    AlertCount,
    AlertPage,
    CountAnswer,
    ListedNote,
    NotePage,
    Paging,
    Refusal,
    RequestAnswer,
    RequestStatus,
    listed,
    whole,
)
from incidents.domain.escalation.policy import Action
from incidents.domain.incident.state import Incident
from incidents.domain.permissions import ForbiddenError
from incidents.domain.values import TITLE_LIMIT, CommandRefusedError, InvalidValueError, parse_rfc3339
from incidents.escalation.commands import escalate, page
from incidents.escalation.models import EscalationPolicy
from incidents.escalation.queries import policy_in_force
from incidents.incident.repository import CommandResult
from incidents.oncall.models import OnCallSchedule
from incidents.teams.models import Team
from ingest.alerts.deliveries import DeliveryReceipt
from ingest.alerts.rows import CurrentAlert, count_alerts, current_alerts, id_of
from ingest.api.alerts import (
    REFUSED,
    AlertEndpoint,
    RequestRefusedError,
    body_of,
    key_of,
    refused,
    serve,
)
from ingest.api.answers import in_json
from ingest.api.keys import Key
from ingest.integrations import normalized, opsgenie
from ingest.integrations.normalized import InvalidPayloadError, Parsed, Refused, Status
from ingest.queries import Context, now_utc

NAME: Final = "opsgenie"
MOST: Final = 100
"""Alerts of a page, as there."""
FARTHEST: Final = 20_000
"""Offset and limit together, as there."""
ACTIONS: Final[Mapping[str, Status]] = {"close": "resolved", "acknowledge": "acknowledged"}
SORTS: Final = {
    "createdAt": "coalesce(starts_at, changed_at)",
    "updatedAt": "changed_at",
    "lastOccurredAt": "last_seen",
    "alias": "key",
    "message": "title",
    "status": "status",
}
NEEDED: Final = ("alerts", "incidents:read", "incidents:write")
"""Scopes of a key with which all of it works; to create, close, acknowledge and update the message and the description
the first will do."""


# Create, close, acknowledge
# ----------------------------------------------------------------------------------------------------------
@csrf_exempt
def alerts(request: HttpRequest) -> HttpResponse:
    """GET /v2/alerts lists, POST creates."""
    if request.method == "GET":
        return _read(request, _list)
    new_alias = str(uuid.uuid4())
    return _send(request, ("GET", "POST"), lambda body, _: Parsed((opsgenie.created(body, new_alias),)))


@csrf_exempt
def alert(request: HttpRequest, identifier: str) -> HttpResponse:
    """GET /v2/alerts/ID shows an alert; DELETE ends it: what happened stays in the log."""
    if request.method == "GET":
        return _read(request, _show, identifier)
    return _send(request, ("GET", "DELETE"), lambda _, key: _acted(request, key, identifier, b"", "resolved"))


@csrf_exempt
def act(request: HttpRequest, identifier: str, action: str) -> HttpResponse:
    """POST /v2/alerts/ID/close and …/acknowledge."""
    status = ACTIONS[action]
    return _send(request, ("POST",), lambda body, key: _acted(request, key, identifier, body, status))


def _send(
    request: HttpRequest, methods: tuple[str, ...], parse: Callable[[bytes, Key], Parsed]
) -> HttpResponse:
    endpoint = AlertEndpoint(NAME, methods, parse, _accepted, _refuse, overloaded=429)
    return serve(endpoint, request, partial(key_of, request))


def _acted(request: HttpRequest, key: Key, identifier: str, body: bytes, status: Status) -> Parsed:
    """The alert as it is closed or acknowledged; left out, with the reason, where there is none of that name."""
    found = _found(request, identifier, key)
    if found is None:
        return Parsed((), left_out=(Refused(0, "", f"there is no alert {identifier[:100]} of this key"),))
    return Parsed((opsgenie.acted(body, found.alert, status),))


def _accepted(taken: DeliveryReceipt, parsed: Parsed) -> HttpResponse:  # noqa: ARG001
    return in_json(Accepted("Request will be processed", request_id=taken.receipt), 202)


def _refuse(status: int, message: str) -> HttpResponse:
    """As Opsgenie: a body that cannot be read is a 422."""
    return in_json(
        Refusal(message, request_id=str(uuid.uuid4())), 422 if status == HTTPStatus.BAD_REQUEST else status
    )


# Notes
# ----------------------------------------------------------------------------------------------------------
@csrf_exempt
def notes(request: HttpRequest, identifier: str) -> HttpResponse:
    """GET /v2/alerts/ID/notes: the comments on the alert's incident; POST adds one."""
    if request.method == "GET":
        return _read(request, _notes, identifier)
    return _read(request, _note, identifier, method="POST", scope="incidents:write")


def _note(request: HttpRequest, key: Key, identifier: str) -> HttpResponse:
    text = opsgenie.note_of(body_of(request))
    incident = _incident_of(_existing(request, identifier, key))
    return _recorded(incident, commands.comment(incident.id, text, Context(f"key:{key.name}")))


def _notes(request: HttpRequest, key: Key, identifier: str) -> HttpResponse:
    found = _existing(request, identifier, key)
    limit, order = _number(request, "limit", MOST, MOST), _direction(request)
    number = queries.incident_numbers([found.id]).get(found.id)
    events = [] if number is None else queries.incident_events(str(number))
    comments = [event for event in events if event.type == "incident.commented"]
    chosen = comments[:limit] if order == "asc" else comments[::-1][:limit]
    return in_json(
        NotePage(
            [
                ListedNote(
                    event.body["text"], event.actor.partition(":")[2], event.recorded_at, str(event.position)
                )
                for event in chosen
            ],
            request_id=str(uuid.uuid4()),
        )
    )


def _incident_of(found: CurrentAlert) -> Incident:
    number = queries.incident_numbers([found.id]).get(found.id)
    if number is None:
        if found.status == "resolved":
            raise RequestRefusedError(
                409, "The alert is closed and opened no incident, so there is nothing to change."
            )
        # Followers make the incident a moment after the alert was answered.
        raise RequestRefusedError(503, "The incident of this alert is not open yet: send the request again.")
    return queries.get(str(number)).incident


def _recorded(incident: Incident, done: CommandResult) -> HttpResponse:
    return in_json(
        Accepted("Request will be processed", request_id=receipt_of(incident.id, done.events)), 202
    )


# Changes
# ----------------------------------------------------------------------------------------------------------
@csrf_exempt
def change(request: HttpRequest, identifier: str, action: str) -> HttpResponse:
    """POST, PUT or DELETE /v2/alerts/ID/ACTION: a change of the alert's incident, or a comment there of what an
    incident has not."""
    method = CHANGES[action][0]
    if request.method == "DELETE" and action in ("tags", "details"):
        method, action = "DELETE", f"remove_{action}"
    # Alertmanager sends both with each alert, and never closes one of which a part was refused.
    scope = "alerts" if action in ("message", "description") else "incidents:write"
    return _read(request, _change, identifier, action, method=method, scope=scope)


def _change(request: HttpRequest, key: Key, identifier: str, action: str) -> HttpResponse:
    body = dict(request.GET.items()) if request.method == "DELETE" else opsgenie.body_of(body_of(request))
    found = _existing(request, identifier, key)
    if _same_as_alert(found, action, body):
        return in_json(Accepted("Request will be processed", request_id=found.receipt or ""), 202)
    incident = _incident_of(found)
    context = Context(f"key:{key.name}")
    try:
        done = CHANGES[action][1](incident, body, context)
    except ForbiddenError as error:
        raise RequestRefusedError(403, str(error)) from None
    except CommandRefusedError as error:
        raise RequestRefusedError(409, error.reason) from None
    if done is None:  # said already
        return in_json(Accepted("Request will be processed", request_id=found.receipt or ""), 202)
    if "note" in body and action not in REASONED:
        commands.comment(incident.id, opsgenie.note_of_value(body), context)
    return _recorded(incident, done)


Body = Mapping[str, Any]


def _same_as_alert(found: CurrentAlert, action: str, body: Body) -> bool:
    """Whether a message or a description is that of an alert that has no incident yet: Alertmanager sends both again
    right after the alert, and the incident opens with them."""
    alert = found.alert
    same = {"message": alert.title, "description": alert.description}.get(action)
    if same is None or queries.incident_numbers([found.id]):
        return False
    return " ".join(opsgenie.text_of(body, action).split()) == " ".join(same.split())


def _snooze(incident: Incident, body: Body, context: Context) -> CommandResult:
    _refuse_several(incident)
    until = body.get("endTime")
    try:
        at = parse_rfc3339(until) if isinstance(until, str) else None
    except ValueError:
        at = None
    if at is None:
        raise InvalidValueError("endTime", "must be an RFC 3339 time such as 2026-12-01T08:00:00Z")
    return commands.snooze(incident.id, at, opsgenie.note_of_value(body), context)


def _refuse_several(incident: Incident) -> None:
    """Refusal of an action on one alert that would silence others."""
    if incident.alerts > 1:
        raise CommandRefusedError(
            f"The alert shares #{incident.number} with {incident.alerts - 1} others: act on the incident."
        )


def _assign(incident: Incident, body: Body, context: Context) -> CommandResult:
    owner = body.get("owner")
    name = owner.get("username") if isinstance(owner, Mapping) else None
    if not isinstance(name, str) or not name:
        raise InvalidValueError("owner.username", "must name a person")
    return commands.assign(incident.id, _person("owner.username", name), context)


def _person(field: str, name: str) -> str:
    """The user name of an account that has this name or mail address."""
    users = get_user_model().objects.filter(is_active=True)
    found = users.filter(Q(**{users.model.USERNAME_FIELD: name}) | Q(email__iexact=name)).first()
    if found is None:
        raise InvalidValueError(field, f"no person {name[:100]!r} by name or mail address")
    return str(found.get_username())


def _escalate(incident: Incident, body: Body, context: Context) -> CommandResult:
    _check_policy(incident, "escalation", opsgenie.reference_of(body, "escalation", "name", "id"))
    return escalate(incident.id, opsgenie.note_of_value(body) or DEFAULT_REASON, context)


def _check_policy(incident: Incident, field: str, name: str) -> None:
    """Refusal of a policy that the incident does not follow."""
    named = EscalationPolicy.objects.filter(Q(slug=name) | Q(name=name)).first()
    if named is None:
        raise InvalidValueError(field, f"no escalation policy {name[:100]!r}")
    followed = policy_in_force(incident, now_utc())
    if followed != named.slug:
        what = f"follows {followed}" if followed else "has no escalation policy"
        raise CommandRefusedError(f"#{incident.number} {what}: hand it over to a team with {named.slug}")


def _add_team(incident: Incident, body: Body, context: Context) -> CommandResult | None:
    return _hand_over(incident, "team", opsgenie.reference_of(body, "team", "name", "id"), body, context)


def _hand_over(
    incident: Incident, field: str, name: str, body: Body, context: Context
) -> CommandResult | None:
    team = Team.objects.filter(Q(slug=name) | Q(name=name)).first()
    if team is None:
        raise InvalidValueError(field, f"no team {name[:100]!r}")
    if team.slug == incident.team:
        return None
    _refuse_several(incident)
    return commands.hand_over(incident.id, team.slug, opsgenie.note_of_value(body) or DEFAULT_REASON, context)


def _add_responder(incident: Incident, body: Body, context: Context) -> CommandResult | None:
    responder = body.get("responder")
    kind = responder.get("type") if isinstance(responder, Mapping) else None
    reason = opsgenie.note_of_value(body) or DEFAULT_REASON
    if kind == "team":
        name = opsgenie.reference_of(body, "responder", "name", "id")
        return _hand_over(incident, "responder", name, body, context)
    if kind == "user":
        named = opsgenie.reference_of(body, "responder", "username", "id")
        person = _person("responder.username", named)
        return page(incident.id, Action("person", person), reason, context)
    if kind == "schedule":
        name = opsgenie.reference_of(body, "responder", "name", "id")
        schedule = OnCallSchedule.objects.filter(Q(slug=name) | Q(name=name)).first()
        if schedule is None:
            raise InvalidValueError("responder", f"no on-call schedule {name[:100]!r}")
        return page(incident.id, Action("schedule", schedule.slug), reason, context)
    if kind == "escalation":
        name = opsgenie.reference_of(body, "responder", "name", "id")
        _check_policy(incident, "responder", name)
        return escalate(incident.id, reason, context)
    raise InvalidValueError("responder.type", "must be one of user, team, schedule, escalation")


def _unacknowledge(incident: Incident, body: Body, context: Context) -> CommandResult:  # noqa: ARG001
    _refuse_several(incident)
    return commands.unacknowledge(incident.id, context)


def _set_priority(incident: Incident, body: Body, context: Context) -> CommandResult | None:
    _refuse_several(incident)
    severity = opsgenie.severity_of_priority(body.get("priority"))
    return None if severity == incident.severity else commands.set_severity(incident.id, severity, context)


def _set_message(incident: Incident, body: Body, context: Context) -> CommandResult | None:
    message = opsgenie.text_of(body, "message")
    if incident.alerts > 1:
        return _say(incident, f"Message: {message}", context)
    title = " ".join(message.split())[:TITLE_LIMIT]
    return None if title == incident.title else commands.set_title(incident.id, title, context)


def _set_description(incident: Incident, body: Body, context: Context) -> CommandResult | None:
    return _say(incident, opsgenie.text_of(body, "description"), context)


def _add_tags(incident: Incident, body: Body, context: Context) -> CommandResult | None:
    return _say(incident, f"Tags: {', '.join(opsgenie.words_of(body, 'tags'))}", context)


def _remove_tags(incident: Incident, body: Body, context: Context) -> CommandResult | None:
    return _say(incident, f"Tags removed: {', '.join(opsgenie.words_of(body, 'tags'))}", context)


def _add_details(incident: Incident, body: Body, context: Context) -> CommandResult | None:
    return _say(incident, opsgenie.details_of(body), context)


def _remove_details(incident: Incident, body: Body, context: Context) -> CommandResult | None:
    return _say(incident, f"Details removed: {', '.join(opsgenie.words_of(body, 'keys'))}", context)


def _say(incident: Incident, text: str, context: Context) -> CommandResult | None:
    """A comment; None where the latest of this key says the same: Alertmanager sends a description with each group."""
    earlier = [
        event.body["text"]
        for event in queries.incident_events(str(incident.number))
        if event.type == "incident.commented" and event.actor == context.actor
    ]
    return None if earlier[-1:] == [text] else commands.comment(incident.id, text, context)


CHANGES: Final[Mapping[str, tuple[str, Callable[[Incident, Body, Context], CommandResult | None]]]] = {
    "snooze": ("POST", _snooze),
    "assign": ("POST", _assign),
    "unacknowledge": ("POST", _unacknowledge),
    "escalate": ("POST", _escalate),
    "teams": ("POST", _add_team),
    "responders": ("POST", _add_responder),
    "tags": ("POST", _add_tags),
    "remove_tags": ("DELETE", _remove_tags),
    "details": ("POST", _add_details),
    "remove_details": ("DELETE", _remove_details),
    "priority": ("PUT", _set_priority),
    "message": ("PUT", _set_message),
    "description": ("PUT", _set_description),
}
"""By action, the method and what it does."""
REASONED: Final = ("snooze", "escalate", "teams", "responders")
"""Actions whose note is the reason that their event holds."""
DEFAULT_REASON: Final = "Asked for by a client of the Opsgenie API"
"""Reason of a request without a note."""


# Reads
# ----------------------------------------------------------------------------------------------------------
@csrf_exempt
def count(request: HttpRequest) -> HttpResponse:
    return _read(request, _count)


@csrf_exempt
def request_status(request: HttpRequest, receipt: str) -> HttpResponse:
    """GET /v2/alerts/requests/ID: what became of a request."""
    return _read(request, _request_status, receipt, scope="alerts")


View = Callable[..., HttpResponse]


def _read(
    request: HttpRequest, view: View, *args: str, method: str = "GET", scope: str = "incidents:read"
) -> HttpResponse:
    """Answer of a view to a key with the scope; errors as Opsgenie writes them."""
    try:
        if request.method != method:
            raise RequestRefusedError(405, f"Only {method} here.")
        key = key_of(request)
        if key is None:
            raise RequestRefusedError(401, "Could not authenticate: a valid integration key is required.")
        if not key.allows(scope):
            needed = f"the scopes {', '.join(NEEDED)}"
            raise RequestRefusedError(
                403, f"The key {key.name} lacks the scope {scope}; all of it works with {needed}."
            )
        return view(request, key, *args)
    except InvalidValueError as error:
        return _refuse(400, str(error))
    except REFUSED as error:
        answer = refused(_refuse, error, overloaded=429)
        if answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            answer["Allow"] = method
        elif answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
            answer["Retry-After"] = "2"
        return answer


def _list(request: HttpRequest, _: Key) -> HttpResponse:
    condition, values = _condition(request.GET.get("query", ""))
    limit, offset = _number(request, "limit", 20, MOST), _number(request, "offset", 0, FARTHEST)
    if offset + limit > FARTHEST:
        raise InvalidValueError("offset", f"and limit together must be at most {FARTHEST}")
    rows = current_alerts(condition, values, _order(request), limit + 1, offset)
    paging = _paging(request, limit, offset, more=len(rows) > limit)
    return in_json(AlertPage([listed(row) for row in rows[:limit]], paging, request_id=str(uuid.uuid4())))


def _paging(request: HttpRequest, limit: int, offset: int, *, more: bool) -> Paging:
    def address(at: int) -> str:
        requested = request.GET.copy()
        requested["offset"], requested["limit"] = str(at), str(limit)
        return f"{settings.PUBLIC_URL}/v2/alerts?{requested.urlencode()}"

    return Paging(address(0), address(offset + limit) if more else UNSET)


def _count(request: HttpRequest, _: Key) -> HttpResponse:
    condition, values = _condition(request.GET.get("query", ""))
    return in_json(CountAnswer(AlertCount(count_alerts(condition, values)), request_id=str(uuid.uuid4())))


def _show(request: HttpRequest, key: Key, identifier: str) -> HttpResponse:
    return in_json(AlertAnswer(whole(_existing(request, identifier, key)), request_id=str(uuid.uuid4())))


def _request_status(request: HttpRequest, key: Key, receipt: str) -> HttpResponse:  # noqa: ARG001
    found = outcomes_of(receipt)
    if found is None or (found[0] != f"key:{key.name}" and not key.allows("incidents:read")):
        raise RequestRefusedError(404, f"There is no request {receipt[:100]}.")
    outcome = found[1]
    (first,) = outcome.get("alerts", [])[:1] or [None]
    good = first is not None or outcome["kind"] == "incident"
    return in_json(
        RequestAnswer(
            RequestStatus(
                status=outcome["outcome"],
                success=good,
                is_success=good,
                processed_at=outcome["recorded_at"],
                integration_id=found[0].partition(":")[2],
                alert_id=first["alert"] if first else "",
                alias=_alias(first["alert"]) if first else "",
            ),
            request_id=receipt,
        )
    )


def _alias(id_: str) -> str:
    return next((found.alert.key for found in current_alerts("id = %s::uuid", (id_,))), "")


# Which alerts
# ----------------------------------------------------------------------------------------------------------
_CLAUSE = re.compile(r'\s*(\w+)\s*[:=]\s*(?:"([^"]*)"|(\S+))\s*(?:AND\b|$)', re.IGNORECASE)
_CONDITIONS: Final = {
    "alias": "key = %s",
    "priority": "upper(labels::jsonb ->> 'priority') = upper(%s)",
    "entity": "labels::jsonb ->> 'entity' = %s",
    "tag": "%s = ANY(string_to_array(labels::jsonb ->> 'tags', ', '))",
    "message": "position(lower(%s) in lower(title)) > 0",
    "source": "labels::jsonb ->> 'source' = %s",
}
_STATUSES: Final = {
    "open": "status <> 'resolved'",
    "closed": "status = 'resolved'",
    "acked": "status = 'acknowledged'",
    "unacked": "status = 'firing'",
}


def _condition(query: str) -> tuple[str, list[str]]:
    """A query of Opsgenie's in SQL, as far as it is clauses joined by AND."""
    conditions, values, at = ["true"], [], 0
    while query[at:].strip():
        clause = _CLAUSE.match(query, at)
        name = clause[1].lower() if clause else ""
        value = (clause[2] if clause[2] is not None else clause[3]) if clause else ""
        if name == "status" and value.lower() in _STATUSES:
            conditions.append(_STATUSES[value.lower()])
        elif name in _CONDITIONS:
            conditions.append(_CONDITIONS[name])
            values.append(value)
        else:
            known = ", ".join(f"status:{word}" for word in _STATUSES)
            raise InvalidValueError(
                "query",
                f"cannot be read at {query[at:][:60].strip()!r}: it takes {known} and"
                f" {', '.join(f'{word}:VALUE' for word in _CONDITIONS)}, joined by AND",
            )
        assert clause is not None
        at = clause.end()
    return " AND ".join(conditions), values


def _order(request: HttpRequest) -> str:
    sort = request.GET.get("sort", "createdAt")
    if sort not in SORTS:
        raise InvalidValueError("sort", f"must be one of {', '.join(SORTS)}")
    return f"{SORTS[sort]} {_direction(request)}, id"


def _direction(request: HttpRequest) -> str:
    order = request.GET.get("order", "desc")
    if order not in ("asc", "desc"):
        raise InvalidValueError("order", "must be asc or desc")
    return order


def _number(request: HttpRequest, name: str, default: int, most: int) -> int:
    text = request.GET.get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,6}", text) or int(text) > most:
        raise InvalidValueError(name, f"must be a number up to {most}")
    return int(text)


def _existing(request: HttpRequest, identifier: str, key: Key) -> CurrentAlert:
    found = _found(request, identifier, key)
    if found is None:
        raise RequestRefusedError(404, f"There is no alert {identifier[:100]} of this key.")
    return found


def _found(request: HttpRequest, identifier: str, key: Key) -> CurrentAlert | None:
    """The key's own alert of an id or an alias, as `identifierType` says; the id by default, as there."""
    kind = request.GET.get("identifierType", "id")
    if kind not in ("id", "alias", "tiny"):
        raise InvalidPayloadError("identifierType", f"must be id, alias or tiny, not {kind[:20]!r}")
    if kind == "tiny":
        return _of_tiny(identifier, key)
    id_ = id_of(key.name, normalized.key_of(identifier)) if kind == "alias" else identifier
    try:
        uuid.UUID(id_)
    except ValueError:
        return None
    found = current_alerts("id = %s::uuid AND integration = %s", (id_, key.name))
    return found[0] if found else None


def _of_tiny(identifier: str, key: Key) -> CurrentAlert | None:
    """The alert whose id begins with these eight digits; None where several do."""
    if not re.fullmatch(r"[0-9a-f]{8}", identifier):
        return None
    ends = (f"{identifier}-0000-0000-0000-000000000000", f"{identifier}-ffff-ffff-ffff-ffffffffffff")
    found = current_alerts("id BETWEEN %s::uuid AND %s::uuid AND integration = %s", (*ends, key.name))
    return found[0] if len(found) == 1 else None
