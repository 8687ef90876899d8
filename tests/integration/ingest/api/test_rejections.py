"""Refusals of a sender with a good key, remembered for the page of its integration: at endpoints of every kind."""

from __future__ import annotations

import pytest
from django.test import Client

from ingest.api import keys, mail
from ingest.api.models import IntegrationKey, Rejection

pytestmark = pytest.mark.django_db


def told(name: str) -> list[tuple[str, int]]:
    return list(Rejection.objects.filter(integration=name).values_list("endpoint", "status"))


@pytest.mark.parametrize(
    ("path", "media_type", "endpoint", "status"),
    [
        ("/v1/metrics", "application/json", "otlp metrics", 400),
        ("/v1/traces", "text/plain", "otlp traces", 415),
        ("/api/v1/write", "application/x-protobuf", "remote write", 400),
        ("/api/v1/write", "text/plain", "remote write", 415),
    ],
)
def test_a_refusal_at_an_endpoint_of_telemetry_is_remembered(
    path: str, media_type: str, endpoint: str, status: int
) -> None:
    name = f"{endpoint} {status}"
    key = keys.create(name, ["telemetry"])
    answer = Client().post(
        path, b"no body", content_type=media_type, headers={"Authorization": f"Bearer {key}"}
    )
    assert (answer.status_code, told(name)) == (status, [(endpoint, status)])


def test_a_key_without_the_scope_is_told_of_beside_the_integration() -> None:
    key = keys.create("logs only", ["alerts"])
    Client().post("/api/v1/write", b"", content_type="text/plain", headers={"Authorization": f"Bearer {key}"})
    assert told("logs only") == [("remote write", 403)]


def test_a_mail_that_is_refused_for_good_is_remembered() -> None:
    keys.create("mailing", ["alerts"])
    address = (
        f"{keys.mail_token(bytes(IntegrationKey.objects.get(name='mailing').digest))}@dossier.example.com"
    )
    answer = mail.store(address, b"Auto-Submitted: auto-replied\r\nSubject: Away\r\n\r\nI am away")
    assert (answer[:3], told("mailing")) == ("554", [("mail", 554)])


def test_a_request_of_nobody_known_is_remembered_nowhere() -> None:
    Client().post(
        "/v1/metrics", b"", content_type="application/json", headers={"Authorization": "Bearer guessed"}
    )
    assert not Rejection.objects.exists()
