"""Alertmanager's reads and silences in the OpenAPI document, in the shapes of Alertmanager's own."""

from __future__ import annotations

from typing import Any, Final

from incidents.api.alerts.alertmanager_shapes import (
    AlertGroup,
    FiringAlert,
    ListedSilence,
    MadeSilence,
    NewSilence,
    Receiver,
    ServerStatus,
)
from ingest.api.openapi.alerts import AS_TEXT, IN_HEADER, refusals
from ingest.api.openapi.generate import TEXT, array, in_json, operation, query_parameter, schema_of, within

_BOOLEAN: Final = {"type": "boolean"}
_FILTER: Final = {
    **query_parameter(
        "filter", 'a matcher such as alertname="Down"; alerts must match all of them', array(TEXT)
    ),
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
    query_parameter("receiver", "regular expression that the slug of the team must match"),
    *(
        query_parameter(name, "false leaves these alerts out", _BOOLEAN)
        for name in ("active", "silenced", "inhibited")
    ),
]
_ID: Final = within("id", TEXT)
_NO: Final = (401, 403, 503)


def describe_alertmanager(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular."""
    paths = {
        "/api/v2/alerts": {"get": _read("alerts", "Firing alerts.", list[FiringAlert], *_WHICH)},
        "/api/v2/alerts/groups": {
            "get": _read("groups", "Firing alerts, grouped by incident.", list[AlertGroup], *_WHICH)
        },
        "/api/v2/status": {
            "get": _read("status", "Version of Alertmanager whose API this is.", ServerStatus)
        },
        "/api/v2/receivers": {"get": _read("receivers", "Teams.", list[Receiver], _RECEIVERS)},
        "/api/v2/silences": {
            "get": _read(
                "silences",
                "Silences, including those that ended in the last five days.",
                list[ListedSilence],
                _FILTER,
            ),
            "post": _make(),
        },
        "/api/v2/silence/{id}": {
            "get": _read("silence", "One silence.", ListedSilence, _ID),
            "delete": _end(),
        },
    }
    for path, operations in paths.items():
        result["paths"].setdefault(path, {}).update(operations)
    return result


def _read(name: str, words: str, shape: Any, *parameters: dict[str, Any]) -> dict[str, Any]:
    statuses = [*([400] if parameters else []), *_NO]
    answers = {
        "200": in_json(schema_of(shape)),
        **refusals(AS_TEXT, *statuses, _400="Invalid filter."),
    }
    return _operation(f"alertmanager_{name}", words, answers, *parameters)


def _make() -> dict[str, Any]:
    answers = {"200": in_json(schema_of(MadeSilence)), **refusals(AS_TEXT, 400, *_NO)}
    words = "Create a silence, or change the silence `id`, which keeps its id if its matchers stay the same."
    made = _operation("alertmanager_silence_make", words, answers)
    return made | {
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema_of(NewSilence)}}}
    }


def _end() -> dict[str, Any]:
    answers = {"200": {"description": "Ended."}, **refusals(AS_TEXT, *_NO)}
    return _operation("alertmanager_silence_end", "End a silence.", answers, _ID)


def _operation(name: str, words: str, answers: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    if _ID in parameters:
        answers |= {"404": {"description": "Silence not found.", "content": dict(AS_TEXT)}}
    return {**operation(name, words, answers, *parameters), "security": IN_HEADER}
