"""Integration keys: shown once, kept hashed, ended at will."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from ingest.api import keys
from ingest.api.authentication import HasScope, KeyAuthentication
from ingest.api.models import IntegrationKey
from ingest.api.problem_details import exception_handler

pytestmark = pytest.mark.django_db


def made(name: str = "feeder", *scopes: str) -> str:
    return keys.create(name, scopes or ("telemetry",))


def test_a_key_is_known_by_its_bearer_header() -> None:
    key = keys.authenticate(f"Bearer {made()}")
    assert key == keys.Key("feeder", frozenset({"telemetry"}))


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer nonsense", "Basic abc", "Bearer dsr_nonsense", "Bearer dsr_é"]
)
def test_another_header_is_no_key(header: str | None) -> None:
    made()
    assert keys.authenticate(header) is None


def test_only_the_hash_of_a_key_is_stored() -> None:
    secret = made()
    row = IntegrationKey.objects.get()
    assert len(bytes(row.digest)) == 32
    assert secret.encode() not in bytes(row.digest)
    assert secret not in str(IntegrationKey.objects.values_list())


def test_a_key_is_looked_up_once_in_a_while() -> None:
    secret = made()
    keys.find(secret)
    with connection.execute_wrapper(lambda *_: pytest.fail("asked the database")):
        assert keys.find(secret) is not None


def test_a_revoked_key_opens_nothing() -> None:
    secret = made()
    keys.find(secret)
    assert keys.revoke("feeder")
    assert keys.find(secret) is None
    assert not keys.revoke("feeder")


def test_a_revocation_elsewhere_is_noticed_when_trust_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "TRUSTED_FOR", 0.0)
    secret = made()
    keys.find(secret)
    IntegrationKey.objects.update(revoked_at="2026-01-01T00:00:00Z")
    assert keys.find(secret) is None


def test_admin_may_do_everything_and_others_what_they_were_given() -> None:
    assert keys.Key("a", frozenset({"admin"})).allows("incidents:write")
    assert not keys.Key("a", frozenset({"incidents:read"})).allows("incidents:write")


def test_names_are_unique_and_scopes_known() -> None:
    made()
    with pytest.raises(keys.KeyNameTakenError):
        made()
    with pytest.raises(ValueError, match="scopes"):
        made("other", "everything")


def test_another_refusal_of_the_database_is_not_taken_for_a_name_that_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("secrets.token_urlsafe", lambda _: "again")
    made("one")
    with pytest.raises(IntegrityError, match="digest"):
        made("two")


def test_the_command_prints_a_working_key() -> None:
    out = StringIO()
    call_command("create_key", "ci", "--scope", "telemetry", "--scope", "alerts", stdout=out)
    key = keys.find(out.getvalue().strip())
    assert key is not None
    assert key.scopes == {"telemetry", "alerts"}


def test_the_command_refuses_a_name_that_is_taken() -> None:
    made("ci")
    with pytest.raises(CommandError, match="ci"):
        call_command("create_key", "ci", "--scope", "telemetry", stdout=StringIO())


class Endpoint(APIView):
    authentication_classes = (KeyAuthentication,)
    permission_classes: tuple[type[BasePermission] | HasScope, ...] = (HasScope("incidents:read"),)  # type: ignore[assignment]

    def get(self, request: Request) -> Response:
        return Response({"name": request.user.get_username()})

    def get_exception_handler(self) -> object:  # type: ignore[override]
        return exception_handler


def ask(secret: str | None) -> Response:
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    answer = Endpoint.as_view()(APIRequestFactory().get("/", headers=headers))
    assert isinstance(answer, Response)
    return answer


def test_the_ticket_api_lets_a_key_with_the_scope_in() -> None:
    assert ask(made("reader", "incidents:read")).data == {"name": "reader"}


@pytest.mark.parametrize(("secret", "status"), [(None, 401), ("dsr_wrong", 401), ("telemetry", 403)])
def test_the_ticket_api_answers_others_with_a_problem(secret: str | None, status: int) -> None:
    answer = ask(made() if secret == "telemetry" else secret)
    assert answer.status_code == status
    assert answer.data["status"] == status
    assert answer.data["detail"]
    assert answer.content_type == "application/problem+json"


def test_a_key_can_be_made_with_a_ready_mapping() -> None:
    out = StringIO()
    call_command("create_key", "checks", "--scope", "alerts", "--mapping", "nagios", stdout=out)
    key = keys.find(out.getvalue().strip())
    assert key is not None
    assert key.mapping is not None
    assert key.mapping["component"] == "host/{host}"


def test_a_key_is_not_made_with_a_mapping_that_cannot_work(tmp_path: Path) -> None:
    (tmp_path / "mapping.json").write_text('{"title": "t"}')
    with pytest.raises(CommandError, match="key: is required"):
        call_command("create_key", "checks", "--scope", "alerts", "--mapping", str(tmp_path / "mapping.json"))
    assert not IntegrationKey.objects.filter(name="checks").exists()


def test_a_mapping_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match="nagio"):
        call_command("create_key", "checks", "--scope", "alerts", "--mapping", "nagio")
