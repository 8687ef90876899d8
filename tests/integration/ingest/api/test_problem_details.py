"""Answers to requests that cannot be answered: they say what would be right."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client, override_settings

from ingest.api import keys

pytestmark = pytest.mark.usefixtures("log_database")
PROBLEM = "application/problem+json"


@pytest.fixture
def alice(client: Client) -> Client:
    client.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    return client


@pytest.mark.parametrize(
    "path",
    [
        "/v1/metrics/",
        "/v2/enqueue/",
        "/api/v2/alerts/",
        "/api/v1/write/",
        "/integrations/alertmanager/a-key/",
        "/integrations/generic/a-key/",
    ],
)
def test_a_sender_with_a_slash_too_many_is_told_so(client: Client, path: str) -> None:
    answer = client.post(path, "{}", content_type="application/json")
    assert (answer.status_code, answer["Content-Type"]) == (404, PROBLEM)
    assert answer.json()["detail"].endswith("Without the slash at its end there is.")


@pytest.mark.parametrize("path", ["/v1/metric", "/v2", "/integrations/nagios/a-key", "/integrations/a-key"])
def test_a_sender_at_no_endpoint_gets_no_page_and_no_key(client: Client, path: str) -> None:
    answer = client.post(path, "{}", content_type="application/json")
    assert (answer.status_code, answer["Content-Type"]) == (404, PROBLEM)
    assert "a-key" not in answer.json()["detail"]


@override_settings(ALLOWED_HOSTS=["dossier.example"])
@pytest.mark.parametrize(("path", "kind"), [("/", "text/html"), ("/api/v1/incidents", PROBLEM)])
def test_a_host_name_that_is_not_known_is_answered_with_what_to_set(
    client: Client, path: str, kind: str
) -> None:
    answer = client.get(path, headers={"Host": "elsewhere.example"})
    assert (answer.status_code, answer["Content-Type"].partition(";")[0]) == (400, kind)
    assert "DOSSIER_ALLOWED_HOSTS" in answer.text


@pytest.mark.parametrize("path", ["/api/v1/incidents", "/incidents/1?"])
def test_too_many_parameters_are_refused_with_how_many_there_may_be(alice: Client, path: str) -> None:
    answer = alice.get(path + "?" + "as_of=1&" * 1_001)
    assert answer.status_code == 400
    assert "more than 1000 parameters" in answer.text


@pytest.mark.parametrize("until", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00%2B00:00"])
def test_changes_until_the_first_day_there_is_are_none(until: str) -> None:
    bearer = {"Authorization": f"Bearer {keys.create('reader', ['incidents:read'])}"}
    answer = Client().get(f"/api/v1/changes?until={until}", headers=bearer)
    assert (answer.status_code, answer.json()) == (200, {"results": []})


@pytest.mark.parametrize("name", ["tor/a", "2026-01-01T00:00:00Z", "%F0%9F%98%80"])
def test_backtests_of_what_is_no_analyzer_are_none(alice: Client, name: str) -> None:
    answer = alice.get(f"/backtests?analyzer={name}")
    assert answer.status_code == 200
    assert "No backtest" in answer.text
