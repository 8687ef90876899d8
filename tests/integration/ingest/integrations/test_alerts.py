"""The endpoints of alerts over HTTP: what they accept, how they refuse, and what a receipt tells afterwards."""

from __future__ import annotations

import base64
import gzip
import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from django.test import Client

from incidents import queries
from incidents.follower import follower
from ingest.alerts.deliveries import delivered
from ingest.api import keys, rejections
from ingest.api.models import IntegrationKey
from ingest.integrations.prometheus import fingerprint
from tests.following import follow_to_the_end

pytestmark = pytest.mark.usefixtures("log_database")
FIRING = {"labels": {"alertname": "Slow", "disk": "d7"}, "annotations": {"summary": "Disk d7 is slow"}}
TRIGGER: dict[str, Any] = {
    "event_action": "trigger",
    "dedup_key": "srv1/cpu",
    "payload": {"summary": "CPU is hot", "source": "srv-1", "severity": "critical"},
}


@pytest.fixture
def key() -> str:
    return keys.create("monitoring", ["alerts", "incidents:read", "incidents:write"])


def post(path: str, body: Any, **headers: str) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    more = {f"HTTP_{name.upper()}": value for name, value in headers.items()}
    answer = Client().post(path, data, content_type="application/json", **more)  # type: ignore[arg-type]
    follow_to_the_end(follower())
    return answer


def get(path: str, key: str) -> Any:
    return Client().get(path, HTTP_AUTHORIZATION=f"Bearer {key}").json()


def tickets() -> list[tuple[str, str, int]]:
    views = queries.list_incidents().items
    return [(view.incident.title, view.incident.state, view.incident.firing) for view in views]


def pagerduty(key: str, **more: Any) -> Any:
    return post("/v2/enqueue", {"routing_key": key, **TRIGGER, **more})


def test_prometheus_posts_as_to_its_alertmanager(key: str) -> None:
    answer = post("/api/v2/alerts", [FIRING], authorization=f"Bearer {key}")
    assert (answer.status_code, answer.content) == (200, b"")
    assert tickets() == [("Disk d7 is slow", "open", 1)]
    over = {**FIRING, "endsAt": "2026-01-01T00:00:00Z", "startsAt": "2025-12-31T00:00:00Z"}
    post("/api/v2/alerts", [over], authorization=f"Bearer {key}")
    assert tickets() == [("Disk d7 is slow", "resolved", 0)]


def test_good_alerts_are_stored_beside_bad_ones_and_the_answer_names_those(key: str) -> None:
    answer = post("/api/v2/alerts", [FIRING, {"labels": {}}], authorization=f"Bearer {key}")
    assert (answer.status_code, len(tickets())) == (400, 1)
    assert "alert 1" in answer.json()
    receipt = get(f"/api/v1/receipts/{answer['Dossier-Receipt']}", key)
    assert receipt["outcome"] == "1 fired, 1 refused"


def test_a_receipt_names_the_ticket_of_each_alert(key: str) -> None:
    answer = post(f"/integrations/generic/{key}", {"title": "Disk is slow", "status": "problem"})
    receipt = get(f"/api/v1/receipts/{answer.json()['receipt']}", key)
    assert receipt["incident"]["number"] == 1
    (told,) = receipt["alerts"]
    assert (told["outcome"], told["incident"]["number"]) == ("fired", 1)
    assert told["why"] == "same key of the same integration"
    (event,) = receipt["events"]
    assert (event["type"], receipt["payload"]["endpoint"]) == ("alert.reported", "generic")


def test_an_alertmanager_webhook_counts_each_alert(key: str) -> None:
    message = {
        "version": "4",
        "status": "firing",
        "groupKey": "{}:{}",
        "alerts": [
            {
                "status": "firing",
                "labels": {"alertname": "Slow", "disk": "a"},
                "startsAt": "2026-01-01T00:00:00Z",
            },
            {
                "status": "resolved",
                "labels": {"alertname": "Slow", "disk": "b"},
                "startsAt": "2026-01-01T00:00:00Z",
            },
        ],
    }
    answer = post(f"/integrations/alertmanager/{key}", message)
    assert (answer.status_code, answer.json()["accepted"]) == (200, 2)
    assert [state for _, state, _ in tickets()] == ["open"]


def test_pagerduty_triggers_acknowledges_and_resolves(key: str) -> None:
    answer = pagerduty(key)
    assert (answer.status_code, answer.json()["dedup_key"], answer.json()["status"]) == (
        202,
        "srv1/cpu",
        "success",
    )
    pagerduty(key, event_action="acknowledge")
    assert tickets() == [("CPU is hot", "acknowledged", 1)]
    pagerduty(key, event_action="resolve")
    assert tickets() == [("CPU is hot", "resolved", 0)]
    pagerduty(key)
    assert [state for _, state, _ in tickets()] == ["open", "resolved"]


def test_a_trigger_without_a_key_is_always_another_alert(key: str) -> None:
    keys_given = {pagerduty(key, dedup_key=None).json()["dedup_key"] for _ in range(3)}
    assert (len(keys_given), len(tickets())) == (3, 3)


def test_pagerduty_is_refused_as_pagerduty_does(key: str) -> None:
    answer = pagerduty(key, payload={"summary": "x"})
    assert (answer.status_code, answer.json()["status"]) == (400, "invalid event")
    assert any("source" in error for error in answer.json()["errors"])
    assert pagerduty("no key").status_code == 400


def test_basic_auth_carries_the_key_as_its_password(key: str) -> None:
    told = base64.b64encode(f"anyone:{key}".encode()).decode()
    assert post("/api/v2/alerts", [FIRING], authorization=f"Basic {told}").status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/v2/alerts", b"{", 400),
        ("/api/v2/alerts", {"labels": {}}, 400),
        ("/api/v2/alerts", b"[" * 100_000, 400),
        ("/v2/enqueue", {"routing_key": "x" * 2**20}, 413),
        ("/integrations/alertmanager/{key}", {"version": "3", "alerts": []}, 400),
        ("/integrations/grafana/{key}", [], 400),
        ("/integrations/generic/{key}", b"no JSON", 400),
        ("/integrations/generic/dsr_unknown", {"title": "x"}, 401),
        ("/v2/enqueue", b"\xff\xfe", 400),
    ],
)
def test_what_is_refused_leaves_nothing(key: str, path: str, body: Any, status: int) -> None:
    answer = post(path.format(key=key), body, authorization=f"Bearer {key}")
    assert (answer.status_code, tickets()) == (status, [])


def message(status: str, starts: datetime, ends: datetime | None = None) -> dict[str, Any]:
    over = "0001-01-01T00:00:00Z" if ends is None else ends.isoformat()
    one = {**FIRING, "status": status, "startsAt": starts.isoformat(), "endsAt": over}
    return {"version": "4", "status": status, "alerts": [one]}


@pytest.mark.parametrize("before", [False, True])
def test_a_firing_that_comes_after_its_own_end_opens_nothing(key: str, before: bool) -> None:
    now, path = datetime.now(UTC), f"/integrations/alertmanager/{key}"
    if before:
        earlier = now - timedelta(hours=2)
        post(path, message("firing", earlier))
        post(path, message("resolved", earlier, now - timedelta(hours=1)))
    post(path, message("resolved", now - timedelta(minutes=5), now - timedelta(seconds=5)))
    late = post(path, message("firing", now - timedelta(minutes=5)))
    assert [state for _, state, _ in tickets()] == ["resolved"] * before
    told = get(f"/api/v1/receipts/{late.json()['receipt']}", key)
    assert told["alerts"][0]["why"] == "this firing has been resolved already"
    post(path, message("firing", now))
    assert [firing for _, state, firing in tickets() if state == "open"] == [1]


UNKNOWN = {"event": {"headline": "Disk is full"}}


def test_a_payload_that_no_mapping_reads_is_stored_and_shown(key: str) -> None:
    rejections._noted.clear()
    answer = post(f"/integrations/generic/{key}", UNKNOWN)
    told = answer.json()
    assert (answer.status_code, told["accepted"], told["refused"][0]["field"]) == (202, 0, "title")
    found = delivered(told["receipt"])
    assert found is not None
    assert json.loads(found.payload) == UNKNOWN
    assert [title[:56] for title, *_ in tickets()] == [
        "Payloads from monitoring are stored but contain no alert"
    ]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/integrations/alertmanager", {"version": "4", "alerts": [{**FIRING, "status": "firing"}]}),
        ("/integrations/grafana", {"version": "1", "alerts": [{**FIRING, "status": "firing"}]}),
        ("/integrations/generic", {"title": "Disk is full"}),
        ("/integrations/heartbeat?name=backup&every=1h", {}),
    ],
)
def test_the_key_may_come_in_a_header_so_that_no_address_holds_it(key: str, path: str, body: Any) -> None:
    assert post(path, body).status_code == 401
    assert post(path, body, authorization=f"Bearer {key}").status_code == 200
    basic = base64.b64encode(f"any:{key}".encode()).decode()
    assert post(path, body, authorization=f"Basic {basic}").status_code == 200


def test_a_gzip_that_unfolds_too_far_is_refused(key: str) -> None:
    bomb = gzip.compress(b" " * (2**26 + 1))
    assert (
        post("/api/v2/alerts", bomb, authorization=f"Bearer {key}", content_encoding="gzip").status_code
        == 413
    )


def test_without_its_scope_a_key_opens_no_endpoint() -> None:
    telemetry = keys.create("telemetry only", ["telemetry"])
    assert post("/api/v2/alerts", [FIRING], authorization=f"Bearer {telemetry}").status_code == 403


def test_a_key_can_be_for_some_endpoints_only(key: str) -> None:
    IntegrationKey.objects.update(endpoints=["pagerduty"])
    assert post("/api/v2/alerts", [FIRING], authorization=f"Bearer {key}").status_code == 403
    assert pagerduty(key).status_code == 202


def test_a_key_that_was_rotated_is_good_until_its_time_is_over(key: str) -> None:
    new = keys.rotate("monitoring", timedelta(hours=1))
    assert [keys.find(one) is not None for one in (key, str(new))] == [True, True]
    newest = keys.rotate("monitoring", timedelta(0))
    assert [keys.find(one) is not None for one in (key, str(new), str(newest))] == [False, False, True]


def test_the_last_use_of_a_key_is_kept(key: str) -> None:
    assert IntegrationKey.objects.get().last_used_at is None
    pagerduty(key)
    assert IntegrationKey.objects.get().last_used_at is not None


def test_a_replica_that_cannot_be_written_to_is_no_database() -> None:
    replica = connection.copy()
    replica.settings_dict["OPTIONS"]["options"] = "-c default_transaction_read_only=on"
    with pytest.raises(OperationalError, match="read-only"):
        replica.ensure_connection()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("POST /api/v2/alerts", 503),
        ("GET /api/v2/alerts", 503),
        ("GET /api/v2/silences", 503),
        ("POST /integrations/alertmanager/KEY", 503),
        ("POST /integrations/grafana/KEY", 503),
        ("POST /integrations/generic/KEY", 503),
        ("POST /integrations/cloudevents/KEY", 429),
        ("GET /integrations/heartbeat/KEY", 503),
        ("POST /v2/enqueue", 429),
        ("POST /v2/change/enqueue", 429),
        ("GET /api/v1/receipts/1", 503),
    ],
)
def test_without_its_database_an_endpoint_says_come_again(
    key: str, path: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections.close_all()
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")
    method, _, address = path.replace("KEY", key).partition(" ")
    told = json.dumps({"routing_key": key, **TRIGGER})
    headers = {"Authorization": f"Bearer {key}"}
    answer = Client().generic(method, address, told, content_type="application/json", headers=headers)
    assert (answer.status_code, answer["Retry-After"]) == (status, "5")


# What amtool, Karma and Grafana read
# ----------------------------------------------------------------------------------------------------------
TOMORROW = datetime.now(UTC) + timedelta(days=1)
SILENCE = {
    "matchers": [{"name": "disk", "value": "d.", "isRegex": True, "isEqual": True}],
    "startsAt": "2026-01-01T00:00:00Z",
    "endsAt": TOMORROW.isoformat(),
    "createdBy": "alice",
    "comment": "disks are being replaced",
}


def test_open_alerts_are_listed_as_alertmanager_does(key: str) -> None:
    post("/api/v2/alerts", [FIRING, {"labels": {"alertname": "Hot"}}], authorization=f"Bearer {key}")
    (found,) = get('/api/v2/alerts?filter=alertname="Slow"', key)
    assert (found["labels"], found["status"]["state"]) == (FIRING["labels"], "active")
    assert len(get('/api/v2/alerts?filter=alertname=~"S.*|H.*"', key)) == 2
    assert get("/api/v2/alerts?filter=alertname!=Slow&active=False", key) == []


def test_links_are_listed_as_the_annotations_that_they_came_as(key: str) -> None:
    book = {"summary": "Slow", "runbook_url": "https://example.com/book"}
    query = {"generatorURL": "http://localhost/graph"}
    sent = [{"labels": {"a": "1"}, "annotations": book}, {"labels": {"a": "2"}, "annotations": book, **query}]
    post("/api/v2/alerts", sent, authorization=f"Bearer {key}")
    found = sorted(get("/api/v2/alerts", key), key=lambda alert: str(alert["labels"]))
    assert [alert["annotations"] for alert in found] == [book, book]
    assert [alert.get("generatorURL") for alert in found] == [None, query["generatorURL"]]


def test_an_open_alert_is_listed_with_the_fingerprint_that_prometheus_gives_it(key: str) -> None:
    for path in ("/api/v2/alerts", f"/integrations/generic/{key}"):
        sent = [FIRING] if "v2" in path else {"title": "Hot", "labels": FIRING["labels"], "key": "k"}
        post(path, sent, authorization=f"Bearer {key}")
    prints = {alert["fingerprint"] for alert in get("/api/v2/alerts", key)}
    assert prints == {fingerprint(FIRING["labels"])}


def test_groups_are_tickets(key: str) -> None:
    many = [{"labels": {"alertname": "Slow", "disk": f"d{n}"}} for n in range(3)]
    post("/api/v2/alerts", many, authorization=f"Bearer {key}")
    (group,) = get("/api/v2/alerts/groups", key)
    assert (group["labels"], len(group["alerts"])) == ({"incident": "1"}, 3)


def test_a_silence_is_made_read_and_ended(key: str) -> None:
    answer = post("/api/v2/silences", SILENCE, authorization=f"Bearer {key}")
    made = answer.json()["silenceID"]
    receipt = get(f"/api/v1/receipts/{answer['Dossier-Receipt']}", key)
    assert (receipt["kind"], len(receipt["events"])) == ("configuration", 1)
    assert get(f"/api/v2/silence/{made}", key)["status"] == {"state": "active"}
    post("/api/v2/alerts", [FIRING], authorization=f"Bearer {key}")
    assert tickets() == []
    (alert,) = get("/api/v2/alerts", key)
    assert alert["status"] == {"inhibitedBy": [], "mutedBy": [], "silencedBy": [made], "state": "suppressed"}
    assert Client().delete(f"/api/v2/silence/{made}", HTTP_AUTHORIZATION=f"Bearer {key}").status_code == 200
    assert get("/api/v2/silences", key)[0]["status"] == {"state": "expired"}


def test_the_receipt_of_a_silenced_alert_says_who_silenced_it(key: str) -> None:
    post("/api/v2/silences", SILENCE, authorization=f"Bearer {key}")
    answer = post("/api/v2/alerts", [FIRING], authorization=f"Bearer {key}")
    (told,) = get(f"/api/v1/receipts/{answer['Dossier-Receipt']}", key)["alerts"]
    assert '(disk=~"d.")' in told["why"]
    assert told["why"].startswith(f"silenced by alice until {TOMORROW:%Y-%m-%d %H:%M} UTC")
    over = FIRING | {"startsAt": "2026-01-01T00:00:00Z", "endsAt": "2026-01-01T00:00:01Z"}
    post("/api/v2/alerts", [over], authorization=f"Bearer {key}")
    assert tickets() == []
    assert get(f"/api/v1/receipts/{answer['Dossier-Receipt']}", key)["alerts"] == [told]


@pytest.mark.parametrize(
    "wrong",
    [
        {"matchers": []},
        {"matchers": [{"name": "disk", "value": "(", "isRegex": True}]},
        {"matchers": [{"name": "disk", "value": ".*", "isRegex": True}]},
        {"endsAt": "2025-01-01T00:00:00Z"},
        {"startsAt": "tomorrow"},
        {"id": "7d1c5b0e-0000-4000-8000-000000000000"},
    ],
)
def test_a_silence_that_cannot_be_is_refused(key: str, wrong: dict[str, Any]) -> None:
    answer = post("/api/v2/silences", {**SILENCE, **wrong}, authorization=f"Bearer {key}")
    assert answer.status_code in (400, 404)
    assert get("/api/v2/silences", key) == []


def test_a_receipt_names_what_a_mapping_left_out_on_purpose() -> None:
    mapping = {
        "items": "$.e",
        "title": "$.t",
        "key": "$.t",
        "status": {"from": "$.s", "words": {"GREY": "ignored"}},
    }
    key = keys.create("mapped", ["alerts"], mapping=mapping)
    answer = post(f"/integrations/generic/{key}", {"e": [{"t": "a", "s": "firing"}, {"t": "b", "s": "grey"}]})
    assert answer.json()["accepted"] == 1
    receipt = get(f"/api/v1/receipts/{answer.json()['receipt']}", key)
    assert receipt["outcome"] == "1 fired, 1 ignored"
    (left_out,) = receipt["left_out"]
    assert left_out["alert"] == 1
    assert "ignored" in left_out["reason"]


def test_a_silence_of_a_hundred_years_is_made_as_by_alertmanager(key: str) -> None:
    matchers = [{"name": "disk", "value": "d7", "isRegex": False}]
    told = {"matchers": matchers, "startsAt": "2026-01-01T00:00:00Z", "endsAt": "2126-01-01T00:00:00Z"}
    answer = post("/api/v2/silences", {**told, "createdBy": "alice"}, authorization=f"Bearer {key}")
    assert answer.status_code == 200
    assert get("/api/v2/silences", key)[0]["endsAt"].startswith("2126-01-01")


@pytest.mark.parametrize("path", ["/v2/enqueue", "/v2/change/enqueue"])
@pytest.mark.parametrize("written", ["as it is", "with escapes", "twice"])
def test_a_payload_is_kept_without_the_key_that_its_sender_wrote_into_it(
    key: str, path: str, written: str
) -> None:
    more = {"custom_details": {"sent_with": key}} if written == "twice" else {}
    told = json.dumps({"routing_key": key, **TRIGGER, "payload": {**TRIGGER["payload"], **more}})
    if written == "with escapes":
        told = told.replace("dsr_", "d\\u0073r_")
    receipt = post(path, told.encode())["Dossier-Receipt"]
    kept = delivered(receipt)
    assert kept is not None
    read = json.loads(kept.payload)
    assert key not in str(read)
    assert read == json.loads(told.replace("d\\u0073r_", "dsr_").replace(key, "dsr_…"))
    assert kept.sha256 == sha256(kept.payload).hexdigest()
