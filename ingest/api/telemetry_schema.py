"""The telemetry door in the OpenAPI document, out of the kinds as they are declared: its views are none of DRF's."""

from __future__ import annotations

from typing import Any

from ingest.doors.bodies import ENCODINGS
from ingest.doors.telemetry import FORMATS
from ingest.telemetry.kinds import KINDS

_TEXT = {"type": "string"}
_KIND = {
    "type": "object",
    "description": "What a row of the kind holds.",
    "properties": {
        "kind": _TEXT,
        "help": _TEXT,
        "formats": {"type": "array", "items": _TEXT},
        "fields": {
            "type": "array",
            "items": {"type": "object", "required": ["name", "type", "optional", "help"]},
        },
    },
    "required": ["kind", "help", "formats", "fields"],
}
_ACCEPTED = {
    "type": "object",
    "properties": {"accepted": {"type": "integer"}, "receipt": _TEXT},
    "required": ["accepted", "receipt"],
}
_NAMED = {"name": "kind", "in": "path", "required": True, "schema": {"type": "string", "enum": sorted(KINDS)}}
_BODIES = {
    "application/x-ndjson": {"schema": {"type": "string", "description": "a row a line"}},
    "application/json": {"schema": {"type": "array", "items": {"type": "object"}, "minItems": 1}},
    "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
}


def describe_telemetry(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular."""
    kinds = {
        "type": "object",
        "properties": {"kinds": {"type": "array", "items": _KIND}},
        "required": ["kinds"],
    }
    result["paths"] |= {
        "/api/v1/telemetry": {
            "get": _operation(
                "telemetry_kinds", "Every kind of telemetry, with its fields.", {"200": _json(kinds)}
            )
        },
        "/api/v1/telemetry/{kind}": {
            "get": _operation(
                "telemetry_kind", "What a row of the kind looks like.", {"200": _json(_KIND)}, _NAMED
            ),
            "post": _post(),
        },
    }
    return result


def _post() -> dict[str, Any]:
    receipt = {"Dossier-Receipt": {"schema": _TEXT}}
    words = (
        "Rows of one kind, stored all or none. A key needs the scope `telemetry`. What is wrong is named by row,"
        " field and reason, the first 20."
    )
    answers = {
        "202": {**_json(_ACCEPTED, "All rows are on disk."), "headers": receipt},
        "409": {"description": "The Idempotency-Key was used for another body. Nothing was stored."},
        "413": {"description": "The body is too large, as sent or after decompression. Nothing was stored."},
        "415": {"description": f"The body must be one of {', '.join(FORMATS)}."},
        "429": {
            "description": "More than may be sent at a time: again after `Retry-After`. Nothing was stored."
        },
    }
    parameters = (
        _NAMED,
        _header(
            "Idempotency-Key",
            "makes a second attempt harmless",
            minLength=1,
            maxLength=255,
            pattern="^[ -~]+$",
        ),
        _header("Content-Encoding", "how the body is compressed", enum=list(ENCODINGS)),
    )
    body = {"required": True, "content": {media_type: _BODIES[media_type] for media_type in FORMATS}}
    return _operation("telemetry_send", words, answers, *parameters) | {
        "requestBody": body,
        "security": [{"integrationKey": []}],
    }


def _operation(name: str, words: str, answers: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "operationId": name,
        "description": words,
        "tags": ["v1"],
        "parameters": list(parameters),
        "responses": answers,
    }


def _json(schema: dict[str, Any], words: str = "") -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": schema}}}


def _header(name: str, words: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": words, "schema": {"type": "string", **schema}}
