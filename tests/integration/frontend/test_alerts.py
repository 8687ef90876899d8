"""The alerts of an incident and receipts, on the pages and over the API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from incidents import queries
from incidents.follower import follower
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.api import keys
from ingest.integrations.normalized import Alert, Parsed, Refused
from tests.following import follow_to_the_end

pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    return client


def alert(key: str, status: Any = "firing", **more: Any) -> Alert:
    return Alert(key, status, f"{key} is slow", group="Slow", component=f"storage_cluster/{key}", **more)


def send(*alerts: Alert, refused: tuple[Refused, ...] = ()) -> str:
    delivery = Delivery("prometheus", "generic", "application/json", b'{"from": "rack <12>"}')
    receipt = receive(Parsed(alerts, refused), delivery).receipt
    follow_to_the_end(follower())
    return receipt


def html(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def test_a_ticket_shows_its_alerts_those_that_fire_first(alice: Client) -> None:
    send(alert("s1"), alert("s2"))
    send(alert("s1", "resolved"))
    body = html(alice, "/incidents/1")
    assert "1 of 2 firing" in body
    assert body.index('<li class="firing">') < body.index('<li class="over">')


def test_a_ticket_with_many_alerts_shows_a_hundred_a_page(alice: Client) -> None:
    send(*(alert(f"s{n}") for n in range(103)))
    assert "1 to 100 of 103" in html(alice, "/incidents/1")
    assert html(alice, "/incidents/1?alerts=100").count('class="firing"') == 3
    assert alice.get("/incidents/1?alerts=x").status_code == 400


def test_many_alerts_say_what_most_of_them_have_in_common(alice: Client) -> None:
    send(
        *(
            alert(f"s{n}", labels={"team": "blue", "rack": "r1" if n < 9 else "r2", "disk": f"d{n}"})
            for n in range(12)
        )
    )
    body = html(alice, "/incidents/1")
    shared = body[body.index("Common labels") : body.index('<ul class="alerts">')]
    assert ("<dt>rack</dt>" in shared, "r1" in shared, "r2" in shared, "75" in shared) == (
        True,
        True,
        False,
        True,
    )
    # What all of them carry stands among the incident's facts, and what each has for itself is nothing in common.
    assert ("<dt>team</dt>" in shared, "<dt>disk</dt>" in shared) == (False, False)
    later = datetime.now(UTC) + timedelta(seconds=1)
    assert "Common labels" not in html(alice, f"/incidents/1?as_of={later:%Y-%m-%dT%H:%M:%SZ}")


def test_a_ticket_whose_alerts_are_over_says_that_no_cause_is_known(alice: Client) -> None:
    send(alert("s1"))
    send(alert("s1", "resolved"))
    assert "Cause not confirmed by a person; all alerts had resolved" in html(alice, "/incidents/1")


def test_the_inbox_counts_what_fires(alice: Client) -> None:
    send(alert("s1"), alert("s2"))
    assert "2 of 2 alerts firing" in html(alice, "/")


def test_the_inbox_shows_the_value_of_an_alert_that_fires(alice: Client) -> None:
    query = "https://prom.example.com/graph?g0.expr=disk_used+%3E+90"
    link = {"href": query, "text": "Query in Prometheus"}
    send(alert("a", annotations={"value": "91.5"}, links=(link,)), alert("b"))
    number = queries.list_incidents().items[0].incident.number
    words = "91.5, threshold &gt; 90</span>"
    assert words in html(alice, "/")
    id_ = queries.get(str(number)).incident.id
    assert words in html(alice, f"/inbox/rows?row={id_}")
    send(alert("a", "resolved", annotations={"value": "91.5"}, links=(link,)))
    assert words not in html(alice, "/")


def test_the_api_lists_the_alerts_of_a_ticket_page_by_page() -> None:
    key = keys.create("reader", ["incidents:read"])
    send(*(alert(f"s{n}") for n in range(3)))
    seen, address = [], "/api/v1/incidents/1/alerts?limit=2"
    while address:
        body = Client().get(address, HTTP_AUTHORIZATION=f"Bearer {key}").json()
        seen += [one["title"] for one in body["results"]]
        address = body["next"]
    assert sorted(seen) == ["s0 is slow", "s1 is slow", "s2 is slow"]
    assert body["count"] == 3


def test_the_alerts_of_a_ticket_are_listed_as_they_stood_at_a_moment() -> None:
    key = keys.create("reader", ["incidents:read"])
    send(alert("s1"), alert("s2"))
    then = queries.get("1").position
    send(alert("s1", "resolved"), alert("s3"))
    address = f"/api/v1/incidents/1/alerts?limit=1&as_of={then}"
    seen = []
    while address:
        body = Client().get(address, HTTP_AUTHORIZATION=f"Bearer {key}").json()
        seen += [(one["title"], one["status"], one["repeats"]) for one in body["results"]]
        address = body["next"]
    assert sorted(seen) == [("s1 is slow", "firing", None), ("s2 is slow", "firing", None)]


def test_the_page_of_a_past_moment_shows_the_alerts_of_that_moment(alice: Client) -> None:
    send(alert("s1"))
    then = queries.get("1").position
    send(alert("s1", "resolved"), alert("s2"))
    body = html(alice, f"/incidents/1?as_of={then}")
    assert ("s1 is slow" in body, "1 of 1 firing" in body, "s2 is slow" in body) == (True, True, False)


@pytest.mark.parametrize("query", ["as_of=never", "limit=0", "limit=201", "cursor=x", "offset=1"])
def test_the_api_refuses_a_page_that_is_none(query: str) -> None:
    key = keys.create("reader", ["incidents:read"])
    send(alert("s1"))
    answer = Client().get(f"/api/v1/incidents/1/alerts?{query}", HTTP_AUTHORIZATION=f"Bearer {key}")
    assert answer.status_code == 400


def test_a_receipt_has_a_page_with_each_fate_and_the_payload(alice: Client) -> None:
    receipt = send(alert("s1"), refused=(Refused(1, "labels", "must not be empty"),))
    body = html(alice, f"/receipts/{receipt}")
    assert "s1 is slow" in body
    assert "must not be empty" in body
    assert "rack &lt;12&gt;" in body
    assert 'href="/incidents/1"' in body


def test_an_unknown_receipt_is_not_found(alice: Client) -> None:
    assert alice.get("/receipts/nothing").status_code == 404


def test_titles_of_alerts_are_found_by_their_ids() -> None:
    send(alert("s1"))
    (one,), _ = queries.members("1")
    assert queries.alert_titles([one.id]) == {one.id: "s1 is slow"}


def test_a_payload_is_shown_without_the_key_that_its_sender_wrote_into_it(alice: Client) -> None:
    secret = keys.create("pager", ["alerts"])
    told = {
        "routing_key": secret,
        "event_action": "trigger",
        "payload": {"summary": "CPU is hot", "source": "srv-1", "severity": "error"},
    }
    answer = Client().post("/v2/enqueue", told, content_type="application/json")
    body = html(alice, f"/receipts/{answer['Dossier-Receipt']}")
    assert "CPU is hot" in body
    assert secret not in body
