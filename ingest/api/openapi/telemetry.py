"""The telemetry endpoint in the OpenAPI document, out of the kinds as they are declared: its views are none
of DRF's.
"""

from __future__ import annotations

from typing import Any

from ingest.api.admission import ENCODINGS
from ingest.api.answers import AcceptedRows, KindOfTelemetry, KindsOfTelemetry
from ingest.api.openapi.generate import RECEIPT, array, header, in_json, operation, schema_of, within
from ingest.telemetry.decode.body import FORMATS
from ingest.telemetry.kinds import KINDS

_NAMED = within("kind", {"type": "string", "enum": sorted(KINDS)})
_BODIES = {
    "application/x-ndjson": {"schema": {"type": "string", "description": "a row a line"}},
    "application/json": {"schema": {**array({"type": "object"}), "minItems": 1}},
    "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
}


def describe_telemetry(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular."""
    result["paths"] |= {
        "/api/v1/telemetry": {
            "get": operation(
                "telemetry_kinds",
                "Every kind of telemetry, with its fields.",
                {"200": in_json(schema_of(KindsOfTelemetry))},
            )
        },
        "/api/v1/telemetry/{kind}": {
            "get": operation(
                "telemetry_kind",
                "What a row of the kind looks like.",
                {"200": in_json(schema_of(KindOfTelemetry))},
                _NAMED,
            ),
            "post": _post(),
        },
    }
    return result


def _post() -> dict[str, Any]:
    words = (
        "Rows of one kind, stored all or none. A key needs the scope `telemetry`. What is wrong is named by row,"
        " field and reason, the first 20."
    )
    answers = {
        "202": {**in_json(schema_of(AcceptedRows), "All rows are on disk."), "headers": RECEIPT},
        "409": {"description": "The Idempotency-Key was used for another body. Nothing was stored."},
        "413": {"description": "The body is too large, as sent or after decompression. Nothing was stored."},
        "415": {"description": f"The body must be one of {', '.join(FORMATS)}."},
        "429": {
            "description": "More than may be sent at a time: again after `Retry-After`. Nothing was stored."
        },
    }
    parameters = (
        _NAMED,
        header(
            "Idempotency-Key",
            "makes a second attempt harmless",
            minLength=1,
            maxLength=255,
            pattern="^[ -~]+$",
        ),
        header("Content-Encoding", "how the body is compressed", enum=list(ENCODINGS)),
    )
    body = {"required": True, "content": {media_type: _BODIES[media_type] for media_type in FORMATS}}
    return operation("telemetry_send", words, answers, *parameters) | {
        "requestBody": body,
        "security": [{"integrationKey": []}],
    }
