"""Questions of machines: is it alive, is it ready, what are its figures."""

import os
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client
from kombu import Connection
from pytest_django import Settings
from redis.exceptions import ConnectionError as RedisAway

from deploy import broker, privileges, processes
from deploy.embedded import Home
from deploy.observability import health, heartbeats
from incidents.incident.models import RebuildProgress
from incidents.webhooks.models import Webhook, WebhookDeadLetter
from incidents.worker.parts import alive
from ingest.api import keys
from ingest.api.models import IntegrationKey, Rejection
from ingest.db import database, disk, server_watch
from ingest.log import types
from ingest.log.append import append
from ingest.log.read import Follower, lags, run_once
from ingest.log.types import Context, EventType, Head, NewEvent
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store import tables


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


@pytest.fixture(autouse=True)
def home_of_one_node(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DOSSIER_HOME on a disk with room, for what the supervisor of a node writes there."""
    settings.HOME = Home(tmp_path)
    monkeypatch.setattr(privileges, "is_root", lambda: False)
    monkeypatch.setattr(disk, "measure", lambda _: disk.Space(500 * 2**30, 1000 * 2**30))
    return tmp_path


def node(home: Path, **states: str) -> None:
    known = [
        processes.Known(name, state, 7, 2, "hung: no heartbeat for 20 s") for name, state in states.items()
    ]
    processes.write(home, known)


def readiness(client: Client) -> tuple[list[str], list[str]]:
    """Reasons and warnings of `/readyz`."""
    answer = client.get("/readyz")
    told = answer.json()
    assert (answer.status_code, told["ready"]) == ((503, False) if told["reasons"] else (200, True))
    return told["reasons"], told["warnings"]


@pytest.mark.django_db
def test_ready_when_database_and_migrations_are(client: Client) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"ready": True, "reasons": [], "warnings": []})


@pytest.mark.django_db
@pytest.mark.parametrize("allowed", ["dossier.example", ".dossier.example", "*"])
def test_probes_ask_a_pod_by_its_address(client: Client, settings: Settings, allowed: str) -> None:
    settings.ALLOWED_HOSTS = [allowed]
    for path in ("/healthz", "/readyz", "/metrics"):
        assert client.get(path, HTTP_HOST="10.0.0.7:8000").status_code == 200
    assert client.get("/", HTTP_HOST="10.0.0.7:8000").status_code == (302 if allowed == "*" else 400)


@pytest.mark.django_db
def test_pages_that_run_as_root_are_warned_of(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileges, "is_root", lambda: True)
    warnings = client.get("/readyz").json()["warnings"]
    assert warnings == ["root: pages and analyzers run as root; see DOSSIER_ALLOW_ROOT"]


@pytest.mark.django_db
def test_a_broker_that_is_away_is_named(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "ping", away)
    assert readiness(client) == ([], ["broker: does not answer"])


@pytest.mark.django_db
@pytest.mark.parametrize(("free", "found"), [(2**20, ["disk: full; nothing can be stored"]), (2**30, [])])
def test_a_full_disk_is_named(
    client: Client, monkeypatch: pytest.MonkeyPatch, free: int, found: list[str]
) -> None:
    monkeypatch.setattr(disk, "measure", lambda _: disk.Space(free, 2**40))
    monkeypatch.setattr(disk, "_last", {})
    assert client.get("/readyz").json()["reasons"] == found


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
    monkeypatch.setattr(health, "migrated", lambda: False)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["database: migrations are missing (manage.py migrate)"]


@pytest.mark.django_db
def test_a_follower_that_is_behind_takes_no_node_out_of_service(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "follower_lags", lambda: {"incidents": 61.0, "runs": 3.0})
    assert readiness(client) == ([], ["followers: behind (incidents 61 s)"])
    assert "Followers: behind" not in client.get("/accounts/login/").content.decode()
    client.force_login(get_user_model().objects.create(username="alice"))
    assert "Followers: behind (incidents 61 s)." in client.get("/").content.decode()


@pytest.mark.django_db
def test_figures_of_database_and_broker_are_read_at_the_time(client: Client) -> None:
    found = figures(client)
    assert (found["dossier_database_up"], found["dossier_broker_up"]) == (1, 1)
    assert found['dossier_incidents{state="open"}'] == 0
    assert found["dossier_log_watermark_age_seconds"] >= 0
    assert found["dossier_run_wait_seconds"] == 0


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
        newer.setitem(types._types, "test.newer", EventType("test.newer"))
        append("log", [NewEvent("test.newer", {}, datetime.now(UTC))], Head.NEW, Context("system:test"))
    assert 0 < lags()["alice"] < 60


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["silent", "ended"])
@pytest.mark.parametrize("name", ["worker", "scheduler"])
def test_a_process_that_hangs_or_ended_is_named(
    client: Client, home_of_one_node: Path, name: str, state: str
) -> None:
    node(home_of_one_node, **{"followers": "running", name: state})
    told = f"processes: not running: {name} (hung: no heartbeat for 20 s)"
    assert readiness(client) == ([], [told])
    counted = figures(client)
    assert counted[f'dossier_process_up{{process="{name}"}}'] == 0
    assert counted['dossier_process_up{process="followers"}'] == 1
    assert counted[f'dossier_process_restarts_total{{process="{name}"}}'] == 2


@pytest.mark.django_db
def test_workers_that_consume_and_do_nothing_are_named(client: Client) -> None:
    assert readiness(client) == ([], [])
    alive("tasks", datetime.now(UTC) - timedelta(minutes=10))
    assert readiness(client) == ([], [])  # a long task may take that long
    alive("tasks", datetime.now(UTC) - timedelta(minutes=20))
    _, (told,) = readiness(client)
    assert re.fullmatch(r"worker: no task was done for 12\d\d s", told)
    heartbeats.note_task()
    assert readiness(client) == ([], [])


@pytest.mark.django_db
def test_a_supervisor_that_hangs_is_named(client: Client, home_of_one_node: Path) -> None:
    node(home_of_one_node, worker="running")
    os.utime(home_of_one_node / "processes.json", (1, 1))
    _, (told,) = readiness(client)
    assert told.startswith("supervisor: no sign of life")


@pytest.mark.django_db
def test_a_node_that_stops_says_so_first(client: Client, home_of_one_node: Path) -> None:
    processes.begin_draining(home_of_one_node)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["reasons"]) == (503, ["this node is stopping"])


@pytest.mark.django_db
def test_a_disk_that_fills_up_is_warned_of(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "measure", lambda _: disk.Space(8 * 2**30, 100 * 2**30))
    answer = client.get("/readyz")
    told = "disk: 8.0% free (8.0 GiB); below 5% telemetry is refused"
    assert (answer.status_code, answer.json()["warnings"]) == (200, [told])
    assert figures(client)["dossier_disk_free_bytes"] == 8 * 2**30


@pytest.mark.django_db
def test_telemetry_gives_way_to_alerts_on_a_disk_that_is_nearly_full(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "measure", lambda _: disk.Space(2**30, 100 * 2**30))
    key = {"Authorization": f"Bearer {keys.create('fleet', ['telemetry', 'alerts'])}"}
    rows = client.post("/api/v1/telemetry/unit_failure", [], content_type="application/json", headers=key)
    assert (rows.status_code, rows["Retry-After"]) == (503, "60")
    assert "disk of Dossier is nearly full" in rows.json()["detail"]
    alerts = [{"labels": {"alertname": "Down"}}]
    assert (
        client.post("/api/v2/alerts", alerts, content_type="application/json", headers=key).status_code == 200
    )


@pytest.fixture
def skewed() -> Iterator[None]:
    """The clock of this machine is an hour ahead of the server's."""
    server = datetime.now(UTC).timestamp() - 3600
    database.measured(datetime.fromtimestamp(server, UTC), server + 3600, server + 3600)
    yield
    database._measured.clear()


@pytest.mark.django_db
@pytest.mark.usefixtures("skewed")
def test_a_wrong_clock_is_named(client: Client) -> None:
    told = "clock: this machine is 3600 s ahead of Postgres; set its clock (NTP)"
    assert client.get("/readyz").json()["reasons"] == [told]
    assert round(figures(client)["dossier_clock_skew_seconds"]) == 3600


def doctor() -> list[str]:
    """The lines of `manage.py doctor` where it finds something."""
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("doctor", stdout=out)
    return out.getvalue().splitlines()


@pytest.mark.django_db
def test_doctor_measures_the_clock_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = SimpleNamespace(time=lambda: time.time() + 3600, monotonic=time.monotonic)
    monkeypatch.setattr(server_watch, "time", ahead)
    monkeypatch.setattr(database, "local_time", ahead.time)
    try:
        assert "clock: this machine is 3600 s ahead of Postgres; set its clock (NTP)" in doctor()
    finally:
        database._measured.clear()


@pytest.mark.django_db
def test_doctor_says_the_cure_and_what_may_lose_alerts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "ping", away)
    found = doctor()
    at = found.index("broker: does not answer")
    assert found[at + 1] == "  -> start Redis or Valkey, or correct REDIS_URL; it may start empty"
    # The cluster of the tests does without.
    at = found.index("database: fsync is off; acknowledged alerts may be lost")
    assert found[at + 1] == "  -> set it to on and restart Postgres"


@pytest.mark.django_db
def test_doctor_tells_of_disk_root_and_processes(
    monkeypatch: pytest.MonkeyPatch, home_of_one_node: Path
) -> None:
    monkeypatch.setattr(disk, "measure", lambda _: disk.Space(8 * 2**30, 100 * 2**30))
    node(home_of_one_node, **{"web-2": "ended"})
    monkeypatch.setattr(processes, "run_as_root", lambda home: home == home_of_one_node)
    found = doctor()
    assert "disk: 8.0% free (8.0 GiB); below 5% telemetry is refused" in found
    assert "web-2: hung: no heartbeat for 20 s" in found
    assert any(line.startswith("root: ") for line in found)


@pytest.mark.django_db
def test_doctor_names_a_rebuild_that_was_ended_and_not_one_that_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker, "ping", away)
    begun = datetime(2026, 11, 21, 12, tzinfo=UTC)
    row = RebuildProgress.objects.create(began_at=begun, moved_at=database.now())
    assert not [line for line in doctor() if line.startswith("rebuild")]
    row.moved_at -= timedelta(minutes=11)
    row.save()
    found = doctor()
    at = found.index("rebuild: begun at 2026-11-21 12:00 UTC and not finished")
    assert found[at + 1].startswith("  -> run `manage.py rebuild_projections`")


def remedy(found: list[str], start: str) -> tuple[str, str]:
    """The line that begins so, and the one below it."""
    (at,) = (place for place, line in enumerate(found) if line.startswith(start))
    return found[at], found[at + 1]


@pytest.mark.django_db
def test_doctor_names_integrations_whose_requests_are_refused_or_whose_keys_end() -> None:
    now = database.now()
    for name, ends in (("feeder", None), ("nagios", timedelta(days=2)), ("unused", timedelta(days=1))):
        keys.create(name, ["alerts"], expires_at=now + ends if ends else None)
    IntegrationKey.objects.filter(name="nagios").update(last_used_at=now)
    for name, at in (("feeder", now), ("nagios", now - timedelta(hours=2)), ("gone", now)):
        Rejection.objects.create(
            integration=name, endpoint="/v2/enqueue", status=400, reason="no summary", times=7, at=at
        )
    found = doctor()
    line, cure = remedy(found, "integration feeder")
    assert "/v2/enqueue refused a request at" in line
    assert "with 400 (no summary); 7 in all" in line
    assert cure.startswith("  -> correct or replace the key")
    assert "its key ends at" in remedy(found, "integration nagios")[0]
    assert not [line for line in found if "gone" in line or "unused" in line]


@pytest.mark.django_db
def test_doctor_names_webhooks_that_gave_events_up() -> None:
    hook = Webhook.objects.create(name="pager", url="https://hooks.example.com/", secret=b"-")
    Webhook.objects.create(name="mirror", secret=b"-", active=False, disabled_reason="answered 410")
    for number, at in enumerate([database.now(), database.now(), database.now() - timedelta(days=2)]):
        WebhookDeadLetter.objects.create(
            webhook=hook, event=f"incident/{number}@1", type="incident.opened", incident=number, position="0" * 36,
            at=at, reason="410 Gone",
        )  # fmt: skip
    line, cure = remedy(doctor(), "webhook pager")
    assert "2 events were given up" in line
    assert "410 Gone" in line
    assert "replay" in cure
    assert remedy(doctor(), "webhook mirror")[0] == "webhook mirror: is switched off: answered 410"


@pytest.mark.django_db
def test_doctor_names_telemetry_past_its_retention() -> None:
    assert not [line for line in doctor() if line.startswith("retention")]
    cell = int((database.now() - timedelta(days=31)).timestamp()) // tables.length(KINDS["probe"])
    tables.make(KINDS["probe"], [cell])
    line, cure = remedy(doctor(), "retention")
    assert "probe should have been dropped" in line
    assert "start a worker" in cure


@pytest.mark.django_db
def test_doctor_says_that_no_part_of_the_log_is_made_ahead() -> None:
    assert not [line for line in doctor() if line.startswith("log")]
    with connection.cursor() as cursor:
        cursor.execute("UPDATE log_part SET first = -first")
    assert "no part is made ahead" in remedy(doctor(), "log")[0]


def test_whom_processes_belong_to_is_asked_of_the_system(tmp_path: Path) -> None:
    assert not processes.run_as_root(tmp_path)
    processes.write(tmp_path, [processes.Known("web-1", "running", os.getpid(), 0, "")])
    assert processes.run_as_root(tmp_path) == (os.geteuid() == 0)
    processes.write(tmp_path, [processes.Known("web-1", "ended", None, 0, "")])
    assert not processes.run_as_root(tmp_path)


@pytest.fixture(autouse=True)
def measured_anew() -> Iterator[None]:
    disk._last.clear()
    yield
    disk._last.clear()
