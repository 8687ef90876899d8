"""Heartbeats: heard of, missed, heard of again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client

from incidents import queries
from incidents.follower import follower
from incidents.timers import EVERY, PATIENCE, ReachabilityGuard, look
from ingest.alerts import heartbeats
from ingest.api import keys
from tests.following import follow_to_the_end

pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture
def key() -> str:
    return keys.create("jobs", ["alerts"])


def call(key: str, query: str = "?name=backup&every=1h") -> Any:
    return Client().get(f"/integrations/heartbeat/{key}{query}")


def pass_time(**span: float) -> int:
    missed = heartbeats.check(datetime.now(UTC) + timedelta(**span))
    follow_to_the_end(follower())
    return missed


def states() -> list[tuple[str, str]]:
    return [(view.incident.title, view.incident.state) for view in queries.list_incidents().items]


def test_a_heartbeat_says_when_the_next_one_is_due(key: str) -> None:
    answer = call(key).json()
    due = datetime.fromisoformat(answer["due"]) - datetime.now(UTC)
    assert timedelta(minutes=71) < due <= timedelta(minutes=72)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/x-www-form-urlencoded", "name=backup&every=1h"),
        ("application/json", '{"name": "backup", "every": "1h"}'),
    ],
)
def test_a_post_says_it_in_its_body_too(key: str, content_type: str, body: str) -> None:
    post = partial(Client().post, content_type=content_type)
    assert post(f"/integrations/heartbeat/{key}", body).json()["heartbeat"] == "backup"
    assert post(f"/integrations/heartbeat/{key}", body.replace("name", "nmae")).status_code == 400
    assert post(f"/integrations/heartbeat/{key}?name=other", "saved 7 files").json()["heartbeat"] == "other"


def test_a_name_that_would_be_cut_short_is_refused(key: str) -> None:
    assert call(key, f"?name={'n' * 236}").status_code == 400
    assert call(key, f"?name={'n' * 235}").json()["heartbeat"] == "n" * 235


def test_a_missed_heartbeat_opens_a_ticket_and_its_return_closes_it(key: str) -> None:
    call(key)
    assert pass_time(minutes=71) == 0
    assert pass_time(minutes=73) == 1
    assert pass_time(minutes=74) == 0
    assert states() == [("Heartbeat backup was missed", "open")]
    call(key)
    follow_to_the_end(follower())
    assert states() == [("Heartbeat backup was missed", "resolved")]
    assert pass_time(minutes=73) == 1


def test_heartbeats_of_several_jobs_are_waited_for_each(key: str) -> None:
    for name in ("a", "b"):
        call(key, f"?name={name}&every=10m")
    assert pass_time(minutes=20) == 2
    assert sorted(title for title, _ in states()) == ["Heartbeat a was missed", "Heartbeat b was missed"]


def test_a_process_that_dies_while_it_tells_of_a_missed_heartbeat_is_made_up_for(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(key)

    def dies(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as during:
        during.setattr(heartbeats, "receive", dies)
        with pytest.raises(SystemExit):
            pass_time(minutes=73)
    assert pass_time(minutes=74) == 1
    assert states() == [("Heartbeat backup was missed", "open")]


def test_a_heartbeat_that_is_no_longer_waited_for_is_not_missed(key: str) -> None:
    call(key)
    assert heartbeats.forget("jobs", "backup")
    assert pass_time(days=9) == 0


@pytest.mark.parametrize("query", ["?every=never", "?every=1s", "?grace=400d", "?name=", "?nmae=x"])
def test_a_call_that_makes_no_sense_is_refused_and_names_the_field(key: str, query: str) -> None:
    answer = call(key, query)
    assert answer.status_code == 400
    assert query[1:].partition("=")[0] in answer.json()["detail"]
    assert heartbeats.waited() == []


def test_the_process_that_delivers_looks_for_what_is_missed_once_senders_could_reach_it(key: str) -> None:
    call(key, "?name=backup&every=10s&grace=10s")
    seconds, later = [0.0], datetime.now(UTC) + timedelta(minutes=1)
    listening = ReachabilityGuard(lambda: seconds[0])
    look(listening, later)
    assert not heartbeats.waited()[0].missed
    for _ in range(int(PATIENCE / EVERY)):
        seconds[0] += EVERY
        listening.looked()
    look(listening, later)
    assert heartbeats.waited()[0].missed


def test_what_no_text_may_hold_is_replaced(key: str) -> None:
    assert call(key, "?name=a&severity=%00&component=host/%00").status_code == 200
    assert pass_time(minutes=9) == 1


def test_a_heartbeat_needs_a_good_key() -> None:
    assert call("dsr_none").status_code == 401
