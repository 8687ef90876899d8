"""The API does what its own OpenAPI document says, whatever it is asked: Schemathesis over every operation."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from deploy.wsgi import application
from incidents.api import root_urls as reads_urls
from incidents.commands import Report, open_incident
from incidents.oncall.models import OnCallSchedule
from incidents.teams.models import Silence
from ingest.api import keys, root_urls
from ingest.api.uploads import FORMATS as UPLOADS
from ingest.queries import Context
from ingest.telemetry.decode.body import FORMATS
from ingest.telemetry.kinds import KINDS

pytestmark = pytest.mark.usefixtures("log_database")
EXAMPLES = int(os.environ.get("OPENAPI_EXAMPLES", "1"))
"""Of each operation; `make test` has little time, more are asked for by hand."""
CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
THERE = {"reference": "1", "name": "there", "slug": "there"}
"""Path parameters that lead to something."""


@schemathesis.serializer(
    "application/x-protobuf", "application/vnd.apache.arrow.stream", "application/x-ndjson"
)
def as_it_is(_: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def test_every_operation_answers_as_the_document_says() -> None:
    key = keys.create("caller", ["admin"])
    keys.create("there", ["alerts"])
    for number in (1, 2):
        open_incident(Report(f"Something {number}", component=f"host/h{number}"), Context("user:alice"))
    layer = {"name": "primary", "people": ["alice"], "start": "2026-01-05T09:00", "turn": "1w"}
    OnCallSchedule.objects.create(slug="there", name="There", layers=[layer])
    there = THERE | {"key": key, "id": a_silence()}
    document = schemathesis.openapi.from_wsgi("/api/schema?format=json", application)
    wrong: dict[str, str] = {}
    for found in document.get_all_operations():
        assert isinstance(found, Ok), found.err()
        operation = found.ok()
        problem = _problem_of(operation, {"Authorization": f"Bearer {key}"}, there)
        if problem:
            wrong[operation.label] = problem
    assert wrong == {}, json.dumps(wrong, indent=2)


def test_the_document_has_the_telemetry_endpoints(client: Client) -> None:
    paths = client.get("/api/schema?format=json").json()["paths"]
    endpoint = paths["/api/v1/telemetry/{kind}"]["post"]
    assert set(endpoint["parameters"][0]["schema"]["enum"]) == set(KINDS)
    assert list(endpoint["requestBody"]["content"]) == list(FORMATS)
    assert {"202", "400", "401", "403", "404", "409", "413", "415", "429"} <= set(endpoint["responses"])
    for kind, format_ in UPLOADS:
        upload = paths[f"/api/v1/telemetry/{kind}/{format_}"]["post"]
        assert list(upload["requestBody"]["content"]) == ["multipart/form-data"]
        assert {"202", "400", "411", "413", "415", "429"} <= set(upload["responses"])


def test_the_document_has_every_endpoint_and_takes_its_own_examples(client: Client) -> None:
    key = keys.create("sender", ["alerts", "telemetry"])
    document = client.get("/api/schema?format=json").json()
    paths = document["paths"]
    endpoints = [each for module in (root_urls, reads_urls) for each in module.urlpatterns]
    assert {
        re.sub("<(?:str|path|uuid|int):(\\w+)>", r"{\1}", f"/{endpoint.pattern}") for endpoint in endpoints
    } <= set(paths)
    answers = {
        (path, method): client.generic(
            method.upper(),
            path.replace("{key}", key),
            json.dumps(body["example"]).replace("the key of this integration", key),
            content_type,
            headers={"Authorization": f"Bearer {key}"},
        )
        for path, operations in paths.items()
        for method, operation in operations.items()
        for content_type, body in operation.get("requestBody", {}).get("content", {}).items()
        if "example" in body
    }
    assert len(answers) == 18
    assert {answer.status_code for answer in answers.values()} <= {200, 202}, answers
    reader = keys.create("reader", ["incidents:read"])
    for path in ("/api/v2/alerts", "/api/v2/alerts/groups", "/api/v2/status", "/api/v2/receivers"):
        answers[path, "get"] = client.get(path, headers={"Authorization": f"Bearer {reader}"})
    assert answers["/api/v2/alerts", "get"].json() != []
    for (path, method), answer in answers.items():
        described = paths[path][method]["responses"][str(answer.status_code)]
        if answer.content:
            schema = described["content"][answer["Content-Type"]]["schema"]
            schema = {**schema, "components": document["components"]}
            jsonschema_rs.validator_for(schema).validate(answer.json())


@pytest.mark.parametrize(
    "path", ["/api", "/api/", "/api/v1/nowhere", "/api/v1/analysis_schedules/a%0Ab", "/api/v1/teams/a/b"]
)
def test_programs_are_told_what_is_not_there_in_json(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


def a_silence() -> str:
    now = datetime.now(UTC)
    matcher = {"name": "disk", "value": "d7", "isRegex": False, "isEqual": True}
    row = Silence.objects.create(
        matchers=[matcher], starts_at=now, ends_at=now + timedelta(hours=1), created_by="alice"
    )
    return str(row.pk)


def _problem_of(operation: Any, headers: dict[str, str], there: Mapping[str, str]) -> str:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), leads=st.sampled_from([True, True, False]))
    def check(case: Any, leads: bool) -> None:
        if leads:
            case.path_parameters.update({name: there[name] for name in case.path_parameters if name in there})
        case.call_and_validate(headers=headers, checks=CHECKS)

    try:
        check()
    except schemathesis.core.failures.FailureGroup as group:
        return "; ".join(f"{failure.title}: {failure.message}"[:500] for failure in group.exceptions)
    return ""
