"""The telemetry endpoints in the OpenAPI document, out of the kinds and file formats as they are declared: their views
are none of DRF's.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from ingest.api.admission import ENCODINGS
from ingest.api.answers import AcceptedRows, KindOfTelemetry, KindsOfTelemetry
from ingest.api.openapi.generate import (
    RECEIPT,
    array,
    header,
    in_json,
    operation,
    query_parameter,
    record,
    schema_of,
    within,
)
from ingest.api.uploads import FORMATS as UPLOADS
from ingest.api.uploads import LONGEST_NAME
from ingest.telemetry.decode.body import FORMATS
from ingest.telemetry.kinds import KINDS

_NAMED = within("kind", {"type": "string", "enum": sorted(KINDS)})
_BODIES = {
    "application/x-ndjson": {"schema": {"type": "string", "description": "one row per line"}},
    "application/json": {"schema": {**array({"type": "object"}), "minItems": 1}},
    "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
}
_WORD = {"type": "string", "maxLength": LONGEST_NAME}
_JOB = {**query_parameter("job", "name of the training job", {**_WORD, "minLength": 1}), "required": True}
_UPLOADS: dict[tuple[str, str], tuple[str, list[dict[str, Any]]]] = {
    ("collective", "flight-recorder"): (
        (
            "Dumps of PyTorch's flight recorder as JSON, one per rank, with the rank at the end of"
            " the file name: `nccl_trace_rank_7.json`."
        ),
        [_JOB],
    ),
    ("function_profile", "profiler-trace"): (
        "Chrome traces of PyTorch's profiler, one per worker.",
        [
            _JOB,
            query_parameter("role", "role of the workers, such as a pipeline stage; default: `all`", _WORD),
            query_parameter("worker", "worker, for a single file; default: the rank in the trace", _WORD),
        ],
    ),
}


def describe_telemetry(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular."""
    result["paths"] |= {
        "/api/v1/telemetry": {
            "get": operation(
                "telemetry_kinds",
                "All telemetry kinds, with their fields.",
                {"200": in_json(schema_of(KindsOfTelemetry))},
            )
        },
        "/api/v1/telemetry/{kind}": {
            "get": operation(
                "telemetry_kind",
                "Fields of a row of the kind.",
                {"200": in_json(schema_of(KindOfTelemetry))},
                _NAMED,
            ),
            "post": _post(),
        },
    } | {f"/api/v1/telemetry/{kind}/{format_}": {"post": _upload(kind, format_)} for kind, format_ in UPLOADS}
    return result


def _post() -> dict[str, Any]:
    words = (
        "Stores rows of one kind, all or none. Requires a key with the scope `telemetry`. Errors"
        " name row, field and reason, for the first 20."
    )
    answers = {
        "202": {**in_json(schema_of(AcceptedRows), "All rows are stored."), "headers": RECEIPT},
        "409": {"description": "The Idempotency-Key was used for a different body. Nothing was stored."},
        "413": {"description": "The body is too large, as sent or after decompression. Nothing was stored."},
        "415": {"description": f"The body must be one of {', '.join(FORMATS)}."},
        "429": {"description": "Rate limit reached: retry after `Retry-After`. Nothing was stored."},
    }
    parameters = (
        _NAMED,
        header(
            "Idempotency-Key",
            "makes retries safe: the same key and body are stored once",
            minLength=1,
            maxLength=255,
            pattern="^[ -~]+$",
        ),
        header("Content-Encoding", "compression of the body", enum=list(ENCODINGS)),
    )
    body = {"required": True, "content": {media_type: _BODIES[media_type] for media_type in FORMATS}}
    return operation("telemetry_send", words, answers, *parameters) | {
        "requestBody": body,
        "security": [{"integrationKey": []}],
    }


def _upload(kind: str, format_: str) -> dict[str, Any]:
    words, parameters = _UPLOADS[kind, format_]
    answers = {
        "202": {**in_json(schema_of(AcceptedRows), "All rows are stored."), "headers": RECEIPT},
        "411": {"description": "The request has no Content-Length. Nothing was stored."},
        "413": {"description": "The body is larger than DOSSIER_UPLOAD_MAX_BODY. Nothing was stored."},
        "415": {"description": "The body must be multipart/form-data."},
        "429": {"description": "Rate limit reached: retry after `Retry-After`. Nothing was stored."},
    }
    files = {
        **array({"type": "string", "format": "binary"}),
        "minItems": 1,
        "maxItems": settings.DATA_UPLOAD_MAX_NUMBER_FILES,
        "description": "files, also gzip; every file of the form is read, with any field name",
    }
    form = {"multipart/form-data": {"schema": record({"file": files})}}
    return operation(
        f"telemetry_upload_{format_.replace('-', '_')}",
        f"{words} All rows are stored, or none. Requires a key with the scope `telemetry`. The same files again"
        " are answered with the first receipt.",
        answers,
        *parameters,
    ) | {
        "requestBody": {"required": True, "content": form},
        "security": [{"integrationKey": []}],
    }
