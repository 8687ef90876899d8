"""Silences on their page and over /api/v1: made, listed with what they hold back, ended."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db.models import JSONField, Value
from django.test import Client
from django.utils import timezone

from incidents import queries
from incidents.follower import follower
from incidents.suppression.models import SilenceRecurrence
from incidents.teams.models import Silence
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.api import keys
from ingest.integrations.normalized import Alert, Parsed
from tests.following import follow_to_the_end

pytestmark = pytest.mark.usefixtures("log_database")
FORM = {"matchers": 'disk=~"d.*"', "span": "1 h", "comment": "Disks are replaced"}


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice"))
    return client


def send(key: str, **labels: str) -> None:
    alert = Alert(key, "firing", f"{key} is slow", group="Slow", labels={"disk": key, **labels})
    receive(Parsed((alert,)), Delivery("prometheus", "test", "application/json", b"{}"))
    follow_to_the_end(follower())


def call(method: str, path: str, body: Any = None, scope: str = "incidents:write") -> Any:
    key = keys.create(f"key {timezone.now().timestamp()}", [scope, "incidents:read"])
    send_it = getattr(Client(), method)
    headers = {"HTTP_AUTHORIZATION": f"Bearer {key}"}
    if body is None:
        return send_it(f"/api/v1{path}", **headers)
    return send_it(f"/api/v1{path}", json.dumps(body), content_type="application/json", **headers)


def test_a_silence_from_the_form_holds_alerts_back_and_the_page_says_why(alice: Client) -> None:
    assert alice.post("/silences", FORM).status_code == 302
    send("d7")
    assert queries.list_incidents().items == []
    body = alice.get("/silences").content.decode()
    assert "suppresses 1 firing alert" in body
    assert "silenced by alice until" in body


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("matchers", "disk", "must be such as"),
        ("matchers", 'disk=~"("', "must be a regular expression of re2"),
        ("matchers", 'disk!="x"', "all alerts would be silenced"),
        ("span", "soon", "must be a duration"),
        ("comment", " ", "must not be empty"),
    ],
)
def test_a_form_that_cannot_be_says_why_beside_its_field(
    alice: Client, field: str, value: str, says: str
) -> None:
    answer = alice.post("/silences", {**FORM, field: value})
    assert answer.status_code == 400
    assert says in answer.content.decode().lower()
    assert not Silence.objects.exists()


def test_a_silence_is_ended_from_the_page(alice: Client) -> None:
    alice.post("/silences", FORM)
    alice.post(f"/silences/{Silence.objects.get().pk}/end")
    assert Silence.objects.get().ends_at <= timezone.now()


def test_a_tickets_common_labels_are_offered(alice: Client) -> None:
    send("d7", rack="r1")
    send("d8", rack="r1")
    body = alice.get("/silences?incident=1").content.decode()
    assert "rack=&quot;r1&quot;</textarea>" in body


def test_over_the_api_a_silence_is_made_listed_and_ended() -> None:
    ends = (timezone.now() + timedelta(hours=1)).isoformat()
    made = call("post", "/silences", {"matchers": 'disk="d7"', "ends_at": ends, "comment": "work"})
    assert (made.status_code, made.json()["state"]) == (201, "active")
    listed = call("get", "/silences?state=active").json()["results"]
    assert [one["id"] for one in listed] == [made.json()["id"]]
    assert call("delete", f"/silences/{made.json()['id']}").json()["state"] == "expired"
    assert call("get", "/silences?state=active").json()["results"] == []


@pytest.mark.parametrize(
    "change",
    [
        {"matchers": 7},
        {"matchers": "x"},
        {"ends_at": "soon"},
        {"ends_at": "2020-01-01T00:00:00Z"},
        {"comment": ""},
    ],
)
def test_over_the_api_a_bad_silence_is_refused_by_field(change: dict[str, Any]) -> None:
    ends = (timezone.now() + timedelta(hours=1)).isoformat()
    answer = call("post", "/silences", {"matchers": 'a="b"', "ends_at": ends, "comment": "work", **change})
    assert answer.status_code == 400
    assert next(iter(change)) in str(answer.json()["errors"])


def test_a_key_that_may_only_read_makes_no_silence() -> None:
    assert call("post", "/silences", {}, scope="incidents:read").status_code == 403


def test_a_silence_that_cannot_be_read_holds_nothing_back() -> None:
    now = timezone.now()
    Silence.objects.create(
        matchers="nonsense",
        starts_at=now - timedelta(hours=1),
        ends_at=now + timedelta(hours=1),
        created_by="alice",
        comment="written by hand",
    )
    send("d1")
    assert len(queries.list_incidents().items) == 1


# What cannot be read any more
# ----------------------------------------------------------------------------------------------------------
def unreadable(alice: Client, **kept: Any) -> str:
    alice.post("/silences", FORM)
    Silence.objects.update(**kept)
    return str(Silence.objects.get().pk)


@pytest.mark.parametrize("matchers", [[{"name": 7}], "disk=d1", {"name": "disk"}, [7], None])
def test_a_silence_that_cannot_be_read_is_shown_with_its_problem_and_ended(
    alice: Client, matchers: Any
) -> None:
    told = unreadable(alice, matchers=Value(matchers, JSONField()))
    page = alice.get("/silences").content.decode()
    assert "Not in effect: matchers" in page
    assert alice.post(f"/silences/{told}/end").status_code == 302
    assert "Not in effect" not in alice.get("/silences").content.decode()


def test_over_http_a_silence_that_cannot_be_read_says_why_and_is_ended(alice: Client) -> None:
    told = unreadable(alice, matchers=[{"name": 7}])
    (one,) = call("get", "/silences?state=unreadable").json()["results"]
    assert one["problem"].startswith("matchers[0]")
    assert one["matchers"][0]["value"] == '[{"name": 7}]'
    assert call("get", "/silences?state=active").json()["results"] == []
    assert call("delete", f"/silences/{told}").json()["state"] == "expired"


def test_a_silence_whose_time_zone_is_no_more_says_so(alice: Client) -> None:
    alice.post("/silences", {**FORM, "again": "every day"})
    SilenceRecurrence.objects.update(time_zone="Mars/Olympus")
    assert "Mars/Olympus" in alice.get("/silences").content.decode().partition("Not in effect")[2]
    (one,) = call("get", "/silences").json()["results"]
    assert (one["state"], "Mars/Olympus" in one["problem"]) == ("unreadable", True)


def test_alertmanagers_api_tells_a_silence_that_cannot_be_read_as_expired_with_the_reason(
    alice: Client,
) -> None:
    told = unreadable(alice, matchers=[{"name": 7}])
    key = keys.create("amtool", ["incidents:read", "incidents:write"])
    amtool = Client(headers={"Authorization": f"Bearer {key}"})
    (one,) = amtool.get("/api/v2/silences").json()
    assert one["status"] == {"state": "expired"}
    assert "cannot be read: matchers[0]" in one["comment"]
    assert amtool.get(f"/api/v2/silence/{told}").json()["id"] == told
    assert amtool.delete(f"/api/v2/silence/{told}").status_code == 200
