"""Opsgenie's Alert API in the OpenAPI document, in the shapes of Opsgenie's own."""

from __future__ import annotations

from typing import Any, Final

from incidents.api.alerts.opsgenie_shapes import (
    Accepted,
    AlertAnswer,
    AlertPage,
    CountAnswer,
    NotePage,
    Refusal,
    RequestAnswer,
)
from ingest.api.openapi.alerts import IN_HEADER, refusals
from ingest.api.openapi.generate import (
    TEXT,
    array,
    in_json,
    operation,
    query_parameter,
    record,
    schema_of,
    within,
)
from ingest.integrations.opsgenie import PRIORITIES

_FORM: Final = {"application/json": {"schema": schema_of(Refusal)}}
_IDENTIFIER: Final = within("identifier", TEXT)
_KIND: Final = query_parameter(
    "identifierType",
    "kind of the identifier; default: id",
    {"type": "string", "enum": ["id", "alias", "tiny"]},
)
_QUERY: Final = query_parameter("query", "conditions such as status:open AND priority:P1")
_NUMBER: Final = {"type": "integer", "minimum": 0}
_PAGE: Final = [
    _QUERY,
    query_parameter("limit", "alerts per page, up to 100; default: 20", _NUMBER),
    query_parameter("offset", "number of alerts to skip", _NUMBER),
    query_parameter("sort", "field to sort by; default: createdAt"),
    query_parameter("order", "asc or desc; default: desc"),
]
_ACTION: Final = record({"user": TEXT, "source": TEXT, "note": TEXT}, [])
_ALERT: Final = record(
    {
        "message": TEXT,
        "alias": TEXT,
        "description": TEXT,
        "responders": array({"type": "object"}),
        "tags": array(TEXT),
        "details": {"type": "object"},
        "entity": TEXT,
        "source": TEXT,
        "priority": {"type": "string", "enum": list(PRIORITIES)},
        "user": TEXT,
        "note": TEXT,
    },
    ["message"],
)


_OWNER: Final = record({"username": TEXT}, ["username"])
_NAMED: Final = record({"id": TEXT, "name": TEXT}, [])
_RESPONDER: Final = record(
    {
        "type": {"type": "string", "enum": ["user", "team", "schedule", "escalation"]},
        "id": TEXT,
        "name": TEXT,
        "username": TEXT,
    },
    ["type"],
)
_DETAILS: Final = {"type": "object", "additionalProperties": TEXT}
_Methods = tuple[tuple[str, str, dict[str, Any] | None, tuple[dict[str, Any], ...]], ...]
_CHANGES: Final[dict[str, _Methods]] = {
    "snooze": (("post", "Snooze the incident of an alert until a time.", {"endTime": TEXT}, ()),),
    "assign": (("post", "Assign the incident of an alert, by user name or mail.", {"owner": _OWNER}, ()),),
    "escalate": (
        ("post", "Page the next people of the incident's escalation policy.", {"escalation": _NAMED}, ()),
    ),
    "teams": (("post", "Hand the incident of an alert over to a team.", {"team": _NAMED}, ()),),
    "responders": (
        (
            "post",
            "Page a user or the people on call, hand over to a team, or page the next people of a policy.",
            {"responder": _RESPONDER},
            (),
        ),
    ),
    "unacknowledge": (("post", "Withdraw an acknowledgement.", {}, ()),),
    "priority": (
        (
            "put",
            "Set the severity of the incident.",
            {"priority": {"enum": list(PRIORITIES), "type": "string"}},
            (),
        ),
    ),
    "message": (
        (
            "put",
            "Set the title of the incident; a comment if the incident has other alerts.",
            {"message": TEXT},
            (),
        ),
    ),
    "description": (("put", "Comment on the incident.", {"description": TEXT}, ()),),
    "tags": (
        ("post", "Add tags, as a comment on the incident.", {"tags": array(TEXT)}, ()),
        (
            "delete",
            "Remove tags, as a comment on the incident.",
            None,
            (query_parameter("tags", "separated by commas"),),
        ),
    ),
    "details": (
        ("post", "Add details, as a comment on the incident.", {"details": _DETAILS}, ()),
        (
            "delete",
            "Remove details, as a comment on the incident.",
            None,
            (query_parameter("keys", "separated by commas"),),
        ),
    ),
}
"""By action: method, words, fields of the body, parameters."""


def describe_opsgenie(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular."""
    one = (_IDENTIFIER, _KIND)
    result["paths"] |= {
        "/v2/alerts": {
            "get": _read("alerts", "Alerts, newest first.", AlertPage, *_PAGE),
            "post": _send("create", "Create an alert in the format of Opsgenie.", _ALERT),
        },
        "/v2/alerts/count": {
            "get": _read("count", "Number of alerts that match a query.", CountAnswer, _QUERY)
        },
        "/v2/alerts/requests/{receipt}": {
            "get": _read(
                "request", "Outcome of a request.", RequestAnswer, within("receipt", TEXT), missing=True
            )
        },
        "/v2/alerts/{identifier}": {
            "get": _read("alert", "One alert.", AlertAnswer, *one, missing=True),
            "delete": _send("delete", "Close an alert; it stays in the log.", None, *one),
        },
        "/v2/alerts/{identifier}/close": {"post": _send("close", "Close an alert.", _ACTION, *one)},
        "/v2/alerts/{identifier}/acknowledge": {
            "post": _send("acknowledge", "Acknowledge an alert.", _ACTION, *one)
        },
        "/v2/alerts/{identifier}/notes": {
            "get": _read(
                "notes",
                "Comments on the incident of an alert, the latest first.",
                NotePage,
                query_parameter("limit", "comments, up to 100 and by default", _NUMBER),
                query_parameter("order", "asc, or desc by default"),
                *one,
                missing=True,
            ),
            "post": _note(*one),
        },
        **{
            f"/v2/alerts/{{identifier}}/{action}": {
                method: _change(f"{method}_{action}", words, fields, *parameters, *one)
                for method, words, fields, parameters in methods
            }
            for action, methods in _CHANGES.items()
        },
    }
    return result


def _read(
    name: str, words: str, shape: Any, *parameters: dict[str, Any], missing: bool = False
) -> dict[str, Any]:
    no = refusals(_FORM, 401, 403, 422, 429)
    return _operation(name, words, {"200": in_json(schema_of(shape)), **no}, *parameters, missing=missing)


def _send(
    name: str, words: str, body: dict[str, Any] | None, *parameters: dict[str, Any], missing: bool = False
) -> dict[str, Any]:
    no = refusals(
        _FORM,
        401,
        403,
        413,
        415,
        422,
        429,
    )
    answers = {"202": in_json(schema_of(Accepted), "Stored."), **no}
    described = _operation(name, words, answers, *parameters, missing=missing)
    if body is None:
        return described
    return {**described, "requestBody": {"content": {"application/json": {"schema": body}}}}


def _note(*parameters: dict[str, Any]) -> dict[str, Any]:
    return _of_incident(
        "note",
        "Comment on the incident of an alert.",
        record({"note": TEXT, "user": TEXT}, ["note"]),
        *parameters,
    )


def _change(
    name: str, words: str, fields: dict[str, Any] | None, *parameters: dict[str, Any]
) -> dict[str, Any]:
    body = None if fields is None else record({**fields, "note": TEXT, "user": TEXT}, list(fields))
    return _of_incident(name, words, body, *parameters)


def _of_incident(
    name: str, words: str, body: dict[str, Any] | None, *parameters: dict[str, Any]
) -> dict[str, Any]:
    described = _send(name, words, body, *parameters, missing=True)
    closed = "Not possible in the state of the incident, or the alert is closed and opened no incident."
    described["responses"] |= refusals(
        _FORM, 409, 503, _409=closed, _503="The incident is not open yet: send the request again."
    )
    return described


def _operation(
    name: str, words: str, answers: dict[str, Any], *parameters: dict[str, Any], missing: bool
) -> dict[str, Any]:
    if missing:
        answers = {**answers, "404": {"description": "Alert not found.", "content": dict(_FORM)}}
    return {**operation(f"opsgenie_{name}", words, answers, *parameters), "security": IN_HEADER}
