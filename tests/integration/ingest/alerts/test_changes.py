"""Change events of PagerDuty's clients: kept, told of, shown on the incidents that they may have caused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django import Settings

from incidents import queries
from incidents.follower import follower
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.alerts.tasks import maintain_deliveries
from ingest.api import keys
from ingest.integrations.normalized import Alert, Parsed
from ingest.log.read import read_stream, watermark
from tests.following import follow_to_the_end
from tests.places import PAYLOADS

pytestmark = pytest.mark.usefixtures("log_database")
GOLDEN = PAYLOADS / "pagerduty" / "change.json"


@pytest.fixture
def key() -> str:
    return keys.create("deployments", ["alerts", "incidents:read"])


def tell(key: str, **payload: Any) -> Any:
    told = {
        "routing_key": key,
        "payload": {"summary": "Deployed cart 2.31", "source": "cart-1", **payload},
        "links": [{"href": "https://builds.example.com/2231", "text": "Build"}],
    }
    return Client().post("/v2/change/enqueue", json.dumps(told), content_type="application/json")


def get(path: str, key: str) -> Any:
    return Client().get(path, HTTP_AUTHORIZATION=f"Bearer {key}").json()


def a_ticket(**labels: str) -> int:
    alert = Alert("k", "firing", "Something is slow", group="Slow", labels=labels)
    receive(Parsed((alert,)), Delivery("prometheus", "test", "application/json", b"{}"))
    follow_to_the_end(follower())
    return queries.list_incidents().items[0].incident.number


def test_the_payload_of_the_real_client_is_kept_as_a_change_and_opens_no_ticket(key: str) -> None:
    body = GOLDEN.read_text().replace("r0123456789abcdef0123456789abcde", key)
    answer = Client().post("/v2/change/enqueue", body, content_type="application/json")
    assert (answer.status_code, answer.json()["status"]) == (202, "success")
    follow_to_the_end(follower())
    assert queries.list_incidents().items == []
    (change,) = get("/api/v1/changes?since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z", key)["results"]
    assert (change["summary"], change["details"]) == ("Deploy 7 of shop", {"build": "7"})
    (event,) = read_stream(f"change/{change['id']}")
    assert (event.type, event.body["receipt"]) == ("change.reported", answer["Dossier-Receipt"])


def test_the_receipt_of_a_change_says_why_it_opened_no_ticket(key: str) -> None:
    receipt = get(f"/api/v1/receipts/{tell(key)['Dossier-Receipt']}", key)
    assert (receipt["kind"], receipt["incident"]) == ("change", None)
    assert receipt["outcome"].startswith("stored; changes do not open incidents")
    assert [event["type"] for event in receipt["events"]] == ["change.reported"]


def test_a_change_that_says_when_it_happened_is_kept_once(key: str) -> None:
    at = datetime.now(UTC).isoformat()
    answers = [tell(key, timestamp=at) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert len(get("/api/v1/changes", key)["results"]) == 1
    again = get(f"/api/v1/receipts/{answers[1]['Dossier-Receipt']}", key)
    assert again["outcome"] == "duplicate of a stored change"


def test_changes_that_do_not_say_when_are_changes_each(key: str) -> None:
    for _ in range(2):
        tell(key)
    assert len(get("/api/v1/changes?name=cart-1", key)["results"]) == 2


def test_a_ticket_shows_the_changes_of_the_day_before_about_what_its_alerts_name(key: str) -> None:
    tell(key, custom_details={"service": "cart"})
    tell(key, summary="Deployed search", source="search-1", custom_details={"service": "search"})
    old = (datetime.now(UTC) - timedelta(days=3)).isoformat()
    tell(key, summary="Deployed cart 2.30", timestamp=old, custom_details={"service": "cart"})
    number = a_ticket(service="cart")
    found = get(f"/api/v1/incidents/{number}/changes", key)["results"]
    assert [one["summary"] for one in found] == ["Deployed cart 2.31"]


def test_of_the_past_a_ticket_shows_the_changes_that_were_known_then(key: str) -> None:
    tell(key, custom_details={"service": "cart"})
    number = a_ticket(service="cart")
    then = watermark()
    tell(key, summary="Deployed cart 2.32", custom_details={"service": "cart"})
    for address, known in ((f"?as_of={then}", 1), ("", 2)):
        found = get(f"/api/v1/incidents/{number}/changes{address}", key)["results"]
        assert len(found) == known
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    body = alice.get(f"/incidents/{number}/details?as_of={then}").content.decode()
    assert "Deployed cart 2.31" in body
    assert "Deployed cart 2.32" not in body


def test_a_change_of_a_host_meets_an_alert_of_one_of_its_ports(key: str) -> None:
    tell(key, source="db-1")
    found = get(f"/api/v1/incidents/{a_ticket(instance='db-1:9100')}/changes", key)["results"]
    assert len(found) == 1


def test_the_page_of_a_ticket_lists_them_with_their_links(key: str) -> None:
    answer = tell(key, custom_details={"service": "cart"})
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    number = a_ticket(service="cart")
    assert "Recent changes" in alice.get(f"/incidents/{number}").content.decode()
    body = alice.get(f"/incidents/{number}/details").content.decode()
    assert "Recent changes" in body
    assert 'href="https://builds.example.com/2231"' in body
    page = alice.get(f"/receipts/{answer['Dossier-Receipt']}").content.decode()
    assert "changes do not open incidents" in page
    assert key not in page


def test_a_change_without_a_summary_or_with_a_wrong_key_is_refused_as_pagerduty_does(key: str) -> None:
    answer = tell(key, summary=" ")
    assert (answer.status_code, answer.json()["status"]) == (400, "invalid event")
    assert tell("no key").status_code == 400
    assert get("/api/v1/changes", key)["results"] == []


def test_changes_are_kept_for_the_long_retention(key: str, settings: Settings) -> None:
    tell(key, timestamp="2020-01-01T00:00:00Z")
    assert maintain_deliveries()["changes"] == 0
    settings.TELEMETRY_SPARSE_RETENTION = timedelta(0)
    assert maintain_deliveries()["changes"] == 1
