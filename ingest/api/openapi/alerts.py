"""The endpoints of alerts, OTLP and remote write in the OpenAPI document.

What a body may hold is said by those who made the format, to whose documents this one points; here stand media types,
an example (that which a test of the integration sends) and how the endpoint answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from ingest.api.answers import (
    AcceptedAlerts,
    AcceptedEvent,
    AcceptedHeartbeat,
    EventAnswer,
    RefusedEvent,
)
from ingest.api.openapi.generate import (
    RECEIPT,
    TEXT,
    array,
    header,
    in_json,
    operation,
    query_parameter,
    record,
    schema_of,
    within,
)
from ingest.api.test_alerts import sample
from ingest.integrations import heartbeat
from ingest.integrations.generic.apply import FORM
from ingest.integrations.otlp.messages import JSON, PROTOBUF

Json = dict[str, Any]

_OBJECT: Final = {"type": "object"}
_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
_KEY: Final = within(
    "key", {"type": "string", "pattern": "^[A-Za-z0-9_-]+$", "description": "integration key"}
)
_ENCODED: Final = header("Content-Encoding", "compression of the body", enum=["identity", "gzip", "zstd"])
IN_HEADER: Final[list[Json]] = [{"integrationKey": []}, {"integrationKeyAsPassword": []}]
"""Headers with the key: a bearer token, or the password of basic auth, whatever the user is called."""
_AT: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)

# How an endpoint says no, and with which statuses: as its senders read it.
AS_PROBLEM: Final = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
AS_TEXT: Final = {"application/json": {"schema": {**TEXT, "description": "reason"}}}
_AS_PAGERDUTY: Final = {"application/json": {"schema": schema_of(RefusedEvent)}}
_AS_STATUS: Final = {
    JSON: {
        "schema": {
            **record({"code": {"type": "integer"}, "message": TEXT}),
            "description": "google.rpc.Status",
        }
    },
    PROTOBUF: _BINARY,
}
_AS_LINE: Final = {"text/plain": {"schema": TEXT}}
_WORDS: Final = {
    400: "Invalid; the answer has field and reason. Nothing was stored.",
    401: "Missing or invalid key. Nothing was stored.",
    403: "The key lacks the scope. Nothing was stored.",
    409: "Not possible in the current state. Nothing was stored.",
    413: "Body too large, as sent or after decompression. Nothing was stored.",
    415: "Unsupported media type or encoding. Nothing was stored.",
    422: "Invalid; the message has the reason. Nothing was stored.",
    429: "Rate limit reached: retry after `Retry-After`. Nothing was stored.",
    503: "Overloaded, or the database is unavailable: retry after `Retry-After`. Nothing was stored.",
}
_LATER: Final = {"Retry-After": {"schema": {"type": "integer"}, "description": "seconds"}}


def refusals(form: Mapping[str, Any], *statuses: int, **words: str) -> Json:
    """Answers that are no 2xx, in the form of the endpoint; `_400="…"` says one in other words."""
    return {
        str(status): {
            "description": words.get(f"_{status}", _WORDS[status]),
            "content": dict(form),
            **({"headers": _LATER} if status in (429, 503) else {}),
        }
        for status in statuses
    }


_COUNTED: Final = {
    **in_json(
        schema_of(AcceptedAlerts),
        "Accepted alerts are stored; `refused` lists invalid alerts, `left_out` those excluded by"
        " the mapping.",
    ),
    "headers": RECEIPT,
}


def describe_alert_endpoints(result: Json, **_: Any) -> Json:
    """A hook of drf-spectacular; after the one that says how other operations answer what is wrong."""
    result["components"]["securitySchemes"]["integrationKeyAsPassword"] = {"type": "http", "scheme": "basic"}
    endpoints = (_alertmanager(), _webhooks(), _heartbeat(), _pagerduty(), _otlp(), _remote_write())
    for path, operations in (pair for endpoint in endpoints for pair in endpoint.items()):
        result["paths"].setdefault(path, {}).update(operations)
        if path.endswith("/{key}"):
            by_header = {method: _by_header(entry) for method, entry in operations.items()}
            result["paths"].setdefault(path.removesuffix("/{key}"), {}).update(by_header)
    return result


def _by_header(described: Json) -> Json:
    """The operation at the address without a key, which stands in a header."""
    parameters = [one for one in described["parameters"] if one is not _KEY]
    name = f"{described['operationId']}_by_header"
    return {**described, "operationId": name, "parameters": parameters, "security": IN_HEADER}


def _send(
    name: str,
    words: str,
    answers: Json,
    content: Json,
    *parameters: Json,
    format_of: str = "",
    security: Sequence[Json] = (),
) -> Json:
    return {
        **operation(name, words, answers, *parameters),
        "requestBody": {"required": True, "content": content},
        "security": list(security),
        **({"externalDocs": {"url": format_of, "description": "format"}} if format_of else {}),
    }


def _like(endpoint: str, schema: Mapping[str, Any]) -> Json:
    return {"schema": dict(schema), "example": sample(endpoint, _AT)}


def _alertmanager() -> Json:
    answers = {
        "200": {"description": "All alerts are stored.", "headers": RECEIPT},
        **refusals(
            AS_TEXT, 400, 401, 403, 413, 415, 503,
            _400="Some alerts are invalid; the answer names them. The valid ones are stored, with a"
" receipt.",
        ),
    }  # fmt: skip
    described = _send(
        "alertmanager_alerts_send",
        "Alerts in the format that Prometheus sends to Alertmanager.",
        answers,
        {JSON: _like("alertmanager-api", array({**record({"labels": _OBJECT})}))},
        _ENCODED,
        format_of="https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml",
        security=IN_HEADER,
    )
    return {"/api/v2/alerts": {"post": described}}


_AM_DOCS = "https://prometheus.io/docs/alerting/latest/configuration/#webhook_config"
_GRAFANA_DOCS = (
    "https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/"
    "webhook-notifier/"
)
_CLOUDEVENTS_DOCS = (
    "https://github.com/cloudevents/spec/blob/main/cloudevents/bindings/http-protocol-binding.md"
)


def _webhooks() -> Json:
    answers = {"200": _COUNTED, **refusals(AS_PROBLEM, 400, 401, 403, 413, 415, 503)}

    def webhook(name: str, words: str, content: Json, format_of: str = "") -> Json:
        return _send(name, words, answers, content, _KEY, _ENCODED, format_of=format_of)

    message = record({"version": TEXT, "alerts": array(_OBJECT)})
    grafana = "Alerts in the format of Grafana's contact point “webhook”."
    mapped = (
        "Any JSON or form, read by the mapping of the integration, or by that of the sender. 202:"
        " stored, without an alert in it."
    )
    anything = {JSON: _like("generic", {}), FORM: {"schema": _OBJECT}}
    return {
        "/integrations/alertmanager/{key}": {
            "post": webhook(
                "alertmanager_webhook",
                "Alerts in the format of Alertmanager's webhook, version 4.",
                {JSON: _like("alertmanager", message)},
                _AM_DOCS,
            )
        },
        "/integrations/grafana/{key}": {
            method: webhook(
                f"grafana_webhook_{method}", grafana, {JSON: _like("grafana", message)}, _GRAFANA_DOCS
            )
            for method in ("post", "put")
        },
        "/integrations/generic/{key}": {
            method: _unread_too(webhook(f"generic_webhook_{method}", mapped, anything))
            for method in ("post", "put")
        },
        "/integrations/cloudevents/{key}": {"post": _cloudevents(), "options": _handshake()},
    }


def _unread_too(described: Json) -> Json:
    return {**described, "responses": {**described["responses"], "202": _COUNTED}}


def _cloudevents() -> Json:
    event = record(dict.fromkeys(("specversion", "id", "source", "type"), TEXT))
    return _send(
        "cloudevents_send",
        "CloudEvents 1.0 as alerts: structured, batched, or binary with the attributes as headers `ce-…`.",
        {"200": _COUNTED, **refusals(AS_PROBLEM, 400, 401, 403, 413, 415, 429)},
        {
            "application/cloudevents+json": _like("cloudevents", event),
            "application/cloudevents-batch+json": {"schema": array(event)},
            JSON: {"schema": {}},
        },
        _KEY,
        _ENCODED,
        format_of=_CLOUDEVENTS_DOCS,
    )


def _handshake() -> Json:
    allowed = {
        "WebHook-Allowed-Origin": {"schema": TEXT},
        "WebHook-Allowed-Rate": {"schema": TEXT, "description": "requests per minute, or `*`"},
    }
    answers = {"200": {"description": "Sending is allowed.", "headers": allowed}}
    words = "Handshake of CloudEvents webhooks."
    origin = header("WebHook-Request-Origin", "sender that asks for permission")
    return {**operation("cloudevents_handshake", words, answers, _KEY, origin), "security": []}


def _heartbeat() -> Json:
    answers = {
        "200": {
            **in_json(schema_of(AcceptedHeartbeat), "Stored; `due` is the time of the next heartbeat."),
            "headers": RECEIPT,
        },
        **refusals(AS_PROBLEM, 400, 401, 403, 413, 415, 503),
    }
    fields = [query_parameter(name, words) for name, words in heartbeat.FIELDS.items()]
    words = "Heartbeat of a job, with the time of the next one. An overdue heartbeat is an alert."
    form = {
        "content": {FORM: {"schema": {"type": "object", "properties": dict.fromkeys(heartbeat.FIELDS, TEXT)}}}
    }
    beats = {
        method: {**operation(f"heartbeat_{method}", words, answers, _KEY, *fields), "security": []}
        for method in ("get", "post")
    }
    beats["post"]["requestBody"] = form
    return {"/integrations/heartbeat/{key}": beats}


def _pagerduty() -> Json:
    no = refusals(
        _AS_PAGERDUTY,
        400,
        413,
        415,
        429,
        _400="Invalid, including an unknown routing key; `errors` has the reason.",
    )

    def endpoint(name: str, words: str, answer: type, content: Json, docs: str) -> Json:
        answers = {"202": {**in_json(schema_of(answer), "Stored."), "headers": RECEIPT}, **no}
        described = _send(name, words, answers, {JSON: content}, _ENCODED, format_of=docs)
        return {"post": described}

    change = {"routing_key": "the key of this integration", "payload": {"summary": "Deployed cart 2.31"}}
    docs = "https://developer.pagerduty.com/docs/send-{}-event"
    return {
        "/v2/enqueue": endpoint(
            "pagerduty_enqueue",
            "Triggers, acknowledges or resolves an alert, in the format of PagerDuty. The routing key"
            " is an integration key.",
            AcceptedEvent,
            _like("pagerduty", record({"routing_key": TEXT, "event_action": TEXT}, ["routing_key"])),
            docs.format("alert"),
        ),
        "/v2/change/enqueue": endpoint(
            "pagerduty_change",
            "Reports a change, which is shown on incidents and opens none.",
            EventAnswer,
            {"schema": record({"routing_key": TEXT, "payload": _OBJECT}), "example": change},
            docs.format("change"),
        ),
    }


_SIGNALS: Final = {
    "metrics": ("Data points, as rows of `metric`.", "resourceMetrics"),
    "traces": ("Spans, as rows of `span`.", "resourceSpans"),
    "logs": (
        "Log records: severity ERROR and above as alerts, all counted as rows of `log_count`.",
        "resourceLogs",
    ),
}


def _otlp() -> Json:
    """Each answers in the form of the request."""
    response = {"type": "object", "properties": {"partialSuccess": _OBJECT}}
    done = {
        "description": "Valid records are stored; invalid ones are counted in `partialSuccess`.",
        "content": {JSON: {"schema": response}, PROTOBUF: _BINARY},
        "headers": RECEIPT,
    }
    answers = {"200": done, **refusals(_AS_STATUS, 400, 401, 403, 413, 415, 429, 503)}

    def endpoint(signal: str, words: str, holds: str) -> Json:
        request = {"type": "object", "properties": {holds: array(_OBJECT)}}
        content = {JSON: {"schema": request, "example": {holds: []}}, PROTOBUF: _BINARY}
        described = _send(
            f"otlp_{signal}", words, answers, content, _ENCODED,
            format_of="https://opentelemetry.io/docs/specs/otlp/#otlphttp", security=IN_HEADER,
        )  # fmt: skip
        return {"post": described}

    return {f"/v1/{signal}": endpoint(signal, *described) for signal, described in _SIGNALS.items()}


def _remote_write() -> Json:
    counts = {f"X-Prometheus-Remote-Write-{what}-Written": {"schema": {"type": "integer"}} for what in (
        "Samples", "Histograms", "Exemplars"
    )}  # fmt: skip
    left_out = {
        "Dossier-Left-Out": {"schema": TEXT, "description": "number of samples that are not numbers, by kind"}
    }
    answers = {
        "204": {"description": "All numeric samples are stored.", "headers": RECEIPT | counts | left_out},
        **refusals(
            _AS_LINE, 400, 401, 403, 413, 415, 503,
            _400="Some samples are invalid; the answer counts them by reason. The valid ones are stored,"
" with a receipt.",
        ),
    }  # fmt: skip
    described = _send(
        "remote_write",
        "Samples as rows of `metric`: Prometheus remote write 1.0 and 2.0, a snappy block of protobuf.",
        answers,
        {PROTOBUF: _BINARY},
        header("Content-Encoding", "always snappy", enum=["snappy"]),
        format_of="https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/",
        security=IN_HEADER,
    )
    return {"/api/v1/write": {"post": described}}
