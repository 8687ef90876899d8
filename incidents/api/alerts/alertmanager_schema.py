"""Alertmanager's reads and silences in the OpenAPI document, in the shapes of Alertmanager's own."""

from __future__ import annotations

from typing import Any, Final

from ingest.api.openapi.alerts import AS_TEXT, IN_HEADER, refusals
from ingest.api.openapi.generate import TEXT, array, in_json, operation, query_parameter, record, within

_MOMENT: Final = {"type": "string", "format": "date-time"}
_TEXTS: Final = {"type": "object", "additionalProperties": TEXT}
_BOOLEAN: Final = {"type": "boolean"}
_RECEIVER: Final = record({"name": TEXT, "labels": _TEXTS})
_STATUS: Final = record(
    {
        "state": {"type": "string", "enum": ["active", "suppressed"]},
        **dict.fromkeys(("silencedBy", "inhibitedBy", "mutedBy"), array(TEXT)),
    }
)
_ALERT: Final = record(
    {
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        **dict.fromkeys(("startsAt", "endsAt", "updatedAt"), _MOMENT),
        "fingerprint": TEXT,
        "receivers": array(_RECEIVER),
        "status": _STATUS,
        "generatorURL": TEXT,
    },
    ["labels", "annotations", "startsAt", "endsAt", "updatedAt", "fingerprint", "receivers", "status"],
)
_GROUP: Final = record(
    {"labels": _TEXTS, "routeLabels": _TEXTS, "receiver": _RECEIVER, "alerts": array(_ALERT)}
)
_MATCHER: Final = record(
    {"name": TEXT, "value": TEXT, "isRegex": _BOOLEAN, "isEqual": _BOOLEAN}, ["name", "value", "isRegex"]
)
_TOLD: Final = {
    "matchers": {**array(_MATCHER), "minItems": 1},
    "startsAt": _MOMENT,
    "endsAt": _MOMENT,
    "createdBy": TEXT,
    "comment": TEXT,
    "annotations": _TEXTS,
}
_SILENCE: Final = record(
    {
        **_TOLD,
        "id": TEXT,
        "updatedAt": _MOMENT,
        "status": record({"state": {"type": "string", "enum": ["pending", "active", "expired"]}}),
    }
)
_VERSION: Final = record(
    {
        "versionInfo": _TEXTS,
        "uptime": _MOMENT,
        "cluster": {"type": "object"},
        "config": record({"original": TEXT}),
    }
)
_FILTER: Final = {
    **query_parameter("filter", 'a matcher, such as alertname="Down"; all must fit', array(TEXT)),
    "explode": True,
}
_RECEIVERS: Final = {
    **query_parameter(
        "receiver_matchers", 'a matcher on a receiver\'s labels, such as name="storage"', array(TEXT)
    ),
    "explode": True,
}
_WHICH: Final = [
    _FILTER,
    _RECEIVERS,
    query_parameter("receiver", "a regular expression of the team"),
    *(
        query_parameter(name, "with false those are left out", _BOOLEAN)
        for name in ("active", "silenced", "inhibited")
    ),
]
_ID: Final = within("id", TEXT)
_NO: Final = (401, 403, 503)


def describe_alertmanager(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular."""
    paths = {
        "/api/v2/alerts": {"get": _read("alerts", "Alerts that fire.", array(_ALERT), *_WHICH)},
        "/api/v2/alerts/groups": {
            "get": _read("groups", "Alerts that fire, by their incidents.", array(_GROUP), *_WHICH)
        },
        "/api/v2/status": {"get": _read("status", "The version whose API this is.", _VERSION)},
        "/api/v2/receivers": {"get": _read("receivers", "Teams.", array(_RECEIVER), _RECEIVERS)},
        "/api/v2/silences": {
            "get": _read(
                "silences", "Silences, those that ended in the last five days, too.", array(_SILENCE), _FILTER
            ),
            "post": _make(),
        },
        "/api/v2/silence/{id}": {"get": _read("silence", "One silence.", _SILENCE, _ID), "delete": _end()},
    }
    for path, operations in paths.items():
        result["paths"].setdefault(path, {}).update(operations)
    return result


def _read(name: str, words: str, schema: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    statuses = [*([400] if parameters else []), *_NO]
    answers = {"200": in_json(schema), **refusals(AS_TEXT, *statuses, _400="A filter cannot be read.")}
    return _operation(f"alertmanager_{name}", words, answers, *parameters)


def _make() -> dict[str, Any]:
    told = record({**_TOLD, "id": TEXT}, ["matchers", "startsAt", "endsAt"])
    answers = {"200": in_json(record({"silenceID": TEXT})), **refusals(AS_TEXT, 400, *_NO)}
    words = "Make a silence, or change the one of `id`: it keeps that id where its matchers stay the same."
    made = _operation("alertmanager_silence_make", words, answers)
    return made | {"requestBody": {"required": True, "content": {"application/json": {"schema": told}}}}


def _end() -> dict[str, Any]:
    answers = {"200": {"description": "It is over."}, **refusals(AS_TEXT, *_NO)}
    return _operation("alertmanager_silence_end", "End a silence.", answers, _ID)


def _operation(name: str, words: str, answers: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    if _ID in parameters:
        answers |= {"404": {"description": "There is no such silence.", "content": dict(AS_TEXT)}}
    return {**operation(name, words, answers, *parameters), "security": IN_HEADER}
