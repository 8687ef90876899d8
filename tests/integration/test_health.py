"""What machines ask: is it alive, is it ready, what are its figures."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from kombu import Connection
from pytest_django import Settings
from redis.exceptions import ConnectionError as RedisAway

from deploy import broker, health
from deploy.embedded import Home
from ingest.log import registry
from ingest.log.follow import Follower, lags, run_once
from ingest.log.registry import EventType
from ingest.log.types import Context, Head, NewEvent
from ingest.log.writing import append


@pytest.fixture(autouse=True)
def own_broker(broker: str, home: Home) -> None:
    del broker, home


def figures(client: Client, **headers: str) -> dict[str, float]:
    lines = client.get("/metrics", headers=headers).content.decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}


def away(*_: Any) -> Any:
    raise RedisAway("gone")


def test_a_living_process_says_so_without_its_database(client: Client) -> None:
    assert client.get("/healthz").json()["status"] == "alive"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_what_changes_nothing_can_only_be_read(path: str) -> None:
    answer = Client(enforce_csrf_checks=True).put(path)
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")


@pytest.mark.django_db
def test_ready_when_database_migrations_broker_and_followers_are(client: Client) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"ready": True, "reasons": []})


@pytest.mark.django_db
def test_a_broker_that_is_away_is_named(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "ping", away)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["reasons"]) == (503, ["broker: does not answer"])


def test_a_socket_is_spelt_as_celery_spells_it(settings: Settings, home: Home) -> None:
    settings.CELERY_BROKER_URL = f"redis+socket://{home.broker_socket}?virtual_host=3"
    broker.client.cache_clear()
    try:
        with Connection(settings.CELERY_BROKER_URL) as celery, celery.SimpleQueue(broker.QUEUE) as queue:
            before = broker.queue_length()
            queue.put({"a": "task"})
            assert broker.queue_length() == before + 1
            queue.clear()
    finally:
        broker.client.cache_clear()


@pytest.mark.django_db
def test_missing_migrations_are_named(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_migrated", lambda: False)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["database: migrations are missing (manage.py migrate)"]


@pytest.mark.django_db
def test_a_follower_that_is_behind_is_named(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.health.follower_lags", lambda: {"incidents": 61.0, "runs": 3.0})
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["reasons"]) == (503, ["followers: behind (incidents 61 s)"])


@pytest.mark.django_db
def test_figures_of_database_and_broker_are_read_at_the_time(client: Client) -> None:
    found = figures(client)
    assert (found["dossier_database_up"], found["dossier_broker_up"]) == (1, 1)
    assert found['dossier_incidents{state="open"}'] == 0
    assert found["dossier_log_watermark_age_seconds"] >= 0


@pytest.mark.django_db
def test_requests_are_counted_under_their_route(client: Client) -> None:
    counted = 'dossier_requests_total{method="GET",status="200",view="healthz"}'
    before = figures(client).get(counted, 0)
    client.get("/healthz")
    assert figures(client)[counted] == before + 1


@pytest.mark.django_db
def test_refused_telemetry_is_counted_by_kind(client: Client) -> None:
    client.post("/api/v1/telemetry/unit_failure", "{}", content_type="application/x-ndjson")
    assert figures(client)['dossier_telemetry_bodies_total{kind="unit_failure",status="401"}'] >= 1


@pytest.mark.django_db
def test_a_broker_that_is_away_leaves_the_other_figures(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "queue_length", away)
    found = figures(client)
    assert (found["dossier_database_up"], found["dossier_broker_up"]) == (1, 0)


@pytest.mark.django_db
@pytest.mark.parametrize("passed_on", [{"X-Forwarded-For": "192.0.2.1"}, {"Forwarded": "for=192.0.2.1"}])
def test_metrics_stay_on_the_machine_without_a_token(client: Client, passed_on: dict[str, str]) -> None:
    assert client.get("/metrics", headers=passed_on).status_code == 403
    assert client.get("/metrics", REMOTE_ADDR="192.0.2.1").status_code == 403


@pytest.mark.django_db
def test_metrics_ask_for_the_token_where_one_is_set(client: Client, settings: Settings) -> None:
    settings.METRICS_TOKEN = "alice"
    assert client.get("/metrics").status_code == 403
    assert client.get("/metrics", headers={"Authorization": "Bearer alice"}).status_code == 200


def test_the_lag_of_a_follower_is_the_age_of_what_it_has_not_passed(log_database: str) -> None:
    del log_database
    follower = Follower("alice", frozenset({"log.sealed"}), lambda _: None)
    run_once(follower)
    assert lags() == {"alice": 0}
    append("log", [NewEvent("log.sealed", {}, datetime.now(UTC))], Head.NEW, Context("system:test"))
    assert 0 < lags()["alice"] < 30
    run_once(follower)
    assert lags() == {"alice": 0}


def test_the_lag_is_told_also_before_an_event_that_this_version_cannot_read(
    log_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del log_database
    run_once(Follower("alice", frozenset({"log.sealed"}), lambda _: None))
    with monkeypatch.context() as newer:
        newer.setitem(registry._types, "test.newer", EventType("test.newer"))
        append("log", [NewEvent("test.newer", {}, datetime.now(UTC))], Head.NEW, Context("system:test"))
    assert 0 < lags()["alice"] < 60
