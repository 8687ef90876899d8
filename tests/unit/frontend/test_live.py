"""Live updates: tokens, what a change is, and who is told what."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from deploy import asgi
from deploy.asgi import MANY, OF_ONE, WAITING, Hub, Tail
from frontend.live import TOKEN_AGE, Change, changes_in, holder, make_token
from ingest.queries import Event, Position


def event(name: str, stream: str, place: int, **body: Any) -> Event:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    at = Position(1, place, 0)
    return Event(stream, place, name, 1, body, "user:alice", None, None, now, now, at, b"\0" * 32)


def change(place: int) -> Change:
    return Change("incidents", f"i{place}", "incident.opened", f"{place:04}")


def told(hub: Hub, after: str = "") -> list[bytes]:
    """Messages that a browser gets at once when it joins."""
    client = hub.join(after)
    return [client.waiting.get_nowait() for _ in range(client.waiting.qsize())]


def test_a_token_opens_a_stream_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    token = make_token("alice")
    assert holder(token) == "alice"
    later = time.time() + TOKEN_AGE + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert holder(token) is None


@pytest.mark.parametrize("token", ["", "alice", "alice:x:y"])
def test_a_made_up_token_opens_nothing(token: str) -> None:
    assert holder(token) is None


def test_several_events_of_a_ticket_are_one_change_at_the_last_position() -> None:
    opened = event("incident.opened", "incident/a", 1, number=12)
    commented = event("incident.commented", "incident/a", 2)
    (found,) = changes_in([opened, commented])
    assert (found.id, found.number, found.what) == ("a", 12, "incident.commented")
    assert found.position == str(commented.position)


def test_runs_and_tickets_are_told_apart() -> None:
    recorded, opened = (
        event("analysis.recorded", "run/r", 1),
        event("incident.opened", "incident/a", 2, number=1),
    )
    assert [found.about for found in changes_in([recorded, opened])] == ["runs", "incidents"]


def test_everyone_who_listens_is_told() -> None:
    hub = Hub()
    one, two = hub.join(""), hub.join("")
    hub.publish([change(1)])
    assert one.waiting.get_nowait() == two.waiting.get_nowait() == change(1).message()


def test_who_was_away_hears_what_was_missed_and_no_more() -> None:
    hub = Hub()
    hub.start_at("0000")
    hub.publish([change(1), change(2)])
    assert told(hub, after="0001") == [change(2).message()]


def test_who_was_away_too_long_reads_the_page_again() -> None:
    hub = Hub()
    hub.start_at("0005")
    assert told(hub, after="0001")[0].startswith(b"event: reset")


def test_a_storm_is_one_message() -> None:
    hub = Hub()
    client = hub.join("")
    hub.publish([change(place) for place in range(MANY + 1)])
    assert client.waiting.qsize() == 1


def test_a_slow_browser_is_told_to_read_again_instead_of_filling_the_memory() -> None:
    hub = Hub()
    client = hub.join("")
    for place in range(WAITING + 1):
        hub.publish([change(place)])
    assert client.waiting.qsize() == 1
    assert client.waiting.get_nowait().startswith(b"event: reset")


def test_one_person_with_many_windows_leaves_room_for_the_others() -> None:
    hub = Hub()
    for _ in range(OF_ONE):
        hub.join("", "bob")
    assert (hub.has_room_for("bob"), hub.has_room_for("alice")) == (False, True)


def test_who_listens_while_the_log_is_read_from_another_place_reads_the_page_again() -> None:
    hub = Hub()
    client = hub.join("")
    hub.start_at("0009")
    assert client.waiting.get_nowait().startswith(b"event: reset\nid: 0009\n")


def test_news_go_on_beyond_what_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    tail = Tail(Hub(), asyncio.new_event_loop())
    tail.place = Position(1, 1, 1)
    seen: list[Position | None] = []

    def follow() -> None:
        seen.append(tail.place)
        if len(seen) == 2:
            tail.stopping.set()
            return
        raise LookupError("stored in schema 2; this code knows up to 1")

    monkeypatch.setattr(asgi, "RETRY", 0.0)
    monkeypatch.setattr(tail, "_follow", follow)
    tail.run()
    tail.loop.close()
    assert seen == [Position(1, 1, 1), None]
