"""Webhooks against real receivers: order, at least once, who waits for whom, rotation, what is given up."""

from __future__ import annotations

import hashlib
import hmac
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_network
from typing import Any

import pytest
from pytest_django import Settings

from incidents import commands
from incidents.domain.webhooks import DISABLE_AFTER, GIVE_UP
from incidents.webhooks import send as posting
from incidents.webhooks.commands import replay, resume, rotate
from incidents.webhooks.dispatcher import WebhookDispatcher
from incidents.webhooks.models import Webhook, WebhookDeadLetter, WebhookRetry
from incidents.webhooks.queries import unreadable
from ingest.commands import append
from ingest.queries import Context, NewEvent, Position, configured, head
from tests.integration.incidents.webhooks.cases import (
    ALICE,
    PATIENCE,
    SECRET,
    at_end,
    bodies,
    comment,
    deliver,
    hook,
    later,
    running,
    ticket,
    told,
)
from tests.integration.sinks import Got, Sink, http_sink, raw_sink

pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture(autouse=True)
def loopback(settings: Settings) -> None:
    settings.OUTBOUND_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]


def test_a_ticket_is_told_in_order_with_the_ticket_as_it_stood() -> None:
    with http_sink() as sink:
        webhook = hook(sink.url)
        one = ticket()
        commands.set_title(one, "Disks are very slow", ALICE)
        commands.acknowledge(one, ALICE)
        deliver(lambda: at_end(webhook))
    opened, renamed, acknowledged = bodies(sink)
    assert [body["type"] for body in (opened, renamed, acknowledged)] == [
        "incident.opened", "incident.title_set", "incident.acknowledged",
    ]  # fmt: skip
    assert [body["incident"]["title"] for body in (opened, renamed)] == [
        "Disks are slow",
        "Disks are very slow",
    ]
    assert (opened["incident"]["state"], acknowledged["incident"]["state"]) == ("open", "acknowledged")
    assert opened["id"] == sink.got[0].headers["dossier-id"] == f"incident/{one}@1"


def test_a_delivery_is_signed_with_the_secret() -> None:
    with http_sink() as sink:
        webhook = hook(sink.url)
        ticket()
        deliver(lambda: at_end(webhook))
    (got,) = sink.got
    parts = dict(part.split("=") for part in got.headers["dossier-signature"].split(","))
    signed = f"{parts['t']}.".encode() + got.body
    assert parts["v1"] == hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()


def test_after_a_rotation_both_secrets_sign_until_the_overlap_is_over() -> None:
    with http_sink() as sink:
        webhook = hook(sink.url)
        rotate(webhook, ALICE)
        ticket()
        deliver(lambda: at_end(webhook))
        webhook.previous_until = datetime.now(UTC)
        webhook.save()
        ticket()
        deliver(lambda: at_end(webhook))
    assert [got.headers["dossier-signature"].count("v1=") for got in sink.got] == [2, 1]


def test_only_what_the_filter_lets_through_is_told() -> None:
    with http_sink() as sink:
        webhook = hook(sink.url, types=["incident.acknowledged"], teams=["storage"])
        for each in (ticket(component="host/h1"), ticket(component="storage_cluster/s1")):
            commands.acknowledge(each, ALICE)
        deliver(lambda: at_end(webhook))
    (body,) = bodies(sink)
    assert (body["type"], body["incident"]["team"]) == ("incident.acknowledged", "storage")


def test_an_event_that_fails_holds_back_its_ticket_and_no_other() -> None:
    def answer(got: Got) -> tuple[int, dict[str, str], bytes]:
        return (500 if b'"text":"poison"' in got.body and not healed.is_set() else 200), {}, b""

    healed = threading.Event()
    with http_sink(answer) as sink:
        webhook = hook(sink.url, types=["incident.commented"])
        sick, well = ticket("sick"), ticket("well")
        for text in ("poison", "second"):
            comment(sick, text)
        for text in ("one", "two"):
            comment(well, text)
        deliver(lambda: at_end(webhook))
        comment(sick, "third")
        comment(well, "three")
        deliver(lambda: at_end(webhook) and len(told(sink)) >= 4)
        assert set(told(sink)) == {(1, "poison"), (2, "one"), (2, "two"), (2, "three")}
        healed.set()
        deliver(lambda: not WebhookRetry.objects.exists(), later(minutes=1))
    assert [text for number, text in told(sink) if number == 1][-3:] == ["poison", "second", "third"]
    assert [text for number, text in told(sink) if number == 2] == ["one", "two", "three"]


def test_an_event_that_is_refused_is_put_aside_with_the_reason_and_the_ticket_goes_on() -> None:
    def answer(got: Got) -> tuple[int, dict[str, str], bytes]:
        return (422 if b'"text":"bad"' in got.body else 200), {}, b"no such field"

    with http_sink(answer) as sink:
        webhook = hook(sink.url, types=["incident.commented"])
        one = ticket()
        for text in ("bad", "good"):
            comment(one, text)
        deliver(lambda: at_end(webhook))
    (parked,) = WebhookDeadLetter.objects.all()
    assert (parked.event, parked.reason) == (f"incident/{one}@2", "answered 422: no such field")
    assert told(sink) == [(1, "bad"), (1, "good")]


def test_a_clock_that_was_set_back_keeps_no_webhook_waiting_for_it() -> None:
    down = threading.Event()
    down.set()
    with http_sink(lambda _: ((503 if down.is_set() else 200), {}, b"")) as sink:
        webhook = hook(sink.url, types=["incident.opened"])
        ticket()
        deliver(lambda: WebhookRetry.objects.exists())
        ahead = datetime.now(UTC) + timedelta(days=1)
        WebhookRetry.objects.update(next_at=ahead)
        Webhook.objects.update(retry_at=ahead)
        asked = len(sink.got)
        down.clear()
        deliver(lambda: at_end(webhook) and not WebhookRetry.objects.exists())
    assert len(sink.got) == asked + 1


def test_an_event_that_fails_for_a_day_while_others_pass_is_put_aside() -> None:
    def answer(got: Got) -> tuple[int, dict[str, str], bytes]:
        return (500 if b'"text":"poison"' in got.body else 200), {}, b""

    with http_sink(answer) as sink:
        webhook = hook(sink.url, types=["incident.commented"])
        one = ticket()
        comment(one, "poison")
        comment(one, "after")
        deliver(lambda: WebhookRetry.objects.exists())
        WebhookRetry.objects.update(since=datetime.now(UTC) - GIVE_UP)
        other = ticket()
        comment(other, "elsewhere")
        deliver(lambda: at_end(webhook))
        deliver(lambda: not WebhookRetry.objects.exists(), later(minutes=1))
    assert told(sink)[-1] == (1, "after")
    assert WebhookDeadLetter.objects.get().reason.startswith(
        "not delivered within a day, unlike other events: answered 500"
    )


def test_an_endpoint_that_is_down_is_left_alone_and_gets_everything_when_it_is_back() -> None:
    down = threading.Event()
    down.set()
    with http_sink(lambda _: ((503 if down.is_set() else 200), {}, b"")) as sink:
        webhook = hook(sink.url, types=["incident.opened"])
        for n in range(30):
            ticket(f"incident {n}")
        deliver(lambda: Webhook.objects.get().retry_at is not None)
        asked = len(sink.got)
        assert asked <= 12
        sink.got.clear()
        down.clear()
        deliver(lambda: at_end(webhook) and not WebhookRetry.objects.exists(), later(minutes=15))
        numbers = [number for number, _ in told(sink)]
    assert sorted(set(numbers)) == list(range(1, 31))
    assert Webhook.objects.get().failing_since is None


def test_an_endpoint_that_fails_for_days_is_switched_off_visibly_and_loses_nothing() -> None:
    down = threading.Event()
    down.set()
    with http_sink(lambda _: ((500 if down.is_set() else 200), {}, b"oh no")) as sink:
        webhook = hook(sink.url, types=["incident.opened"], failing_since=datetime.now(UTC) - DISABLE_AFTER)
        ticket()
        deliver(lambda: not Webhook.objects.get().active)
        assert "answered 500: oh no" in Webhook.objects.get().disabled_reason
        (event,) = configured("webhook", "hook")
        assert (event.actor, event.body["after"]["active"]) == ("system:webhooks", False)
        ticket("while it was off")
        down.clear()
        webhook.refresh_from_db()
        resume(webhook)
        webhook.save()
        deliver(lambda: at_end(webhook) and not WebhookRetry.objects.exists(), later(minutes=1))
    assert {number for number, _ in told(sink)} == {1, 2}


def test_a_webhook_whose_secret_cannot_be_read_stays_on_and_goes_on_under_the_right_key(
    settings: Settings,
) -> None:
    right = str(settings.SECRET_KEY)
    with http_sink() as sink:
        webhook = hook(sink.url, types=["incident.opened"])
        ticket()
        settings.SECRET_KEY = "of another node"
        courier = WebhookDispatcher()
        for _ in range(3):
            courier.step(datetime.now(UTC))
        assert (sink.got, unreadable()) == ([], ["hook"])
        webhook.refresh_from_db()
        assert (webhook.active, webhook.disabled_reason) == (True, "")
        settings.SECRET_KEY = right
        courier.forget()
        deliver(lambda: at_end(webhook))
    assert [number for number, _ in told(sink)] == [1]


def test_an_endpoint_that_is_gone_is_switched_off_at_once() -> None:
    with http_sink(lambda _: (410, {}, b"")) as sink:
        hook(sink.url)
        ticket()
        deliver(lambda: not Webhook.objects.get().active)
    assert "410" in Webhook.objects.get().disabled_reason


def test_a_receiver_that_hangs_holds_up_no_other_webhook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "send", _impatient(posting.send))
    with raw_sink(lambda _: time.sleep(5)) as hanging, http_sink() as sink:
        hook(hanging.url, "hangs")
        well = hook(sink.url, "well")
        for n in range(5):
            ticket(f"incident {n}")
        began = time.monotonic()
        with running():
            while not at_end(well):
                assert time.monotonic() - began < 4
                time.sleep(0.02)
    assert len(sink.got) == 5


def test_a_webhook_that_cannot_be_read_keeps_no_other_from_being_told_once() -> None:
    with http_sink() as sink:
        hook(sink.url, "broken", position="nowhere")
        well = hook(sink.url, "well")
        ticket()
        deliver(lambda: at_end(well))
    assert len(sink.got) == 1


def _impatient(send: Callable[..., posting.Try]) -> Callable[..., posting.Try]:
    def sooner(*args: Any) -> posting.Try:
        return send(*args, timeout=2.0)

    return sooner


def test_a_private_address_is_never_called_and_the_reason_is_told(settings: Settings) -> None:
    settings.OUTBOUND_ALLOWED_NETWORKS = []
    with http_sink() as sink:
        hook(sink.url)
        ticket()
        deliver(lambda: WebhookRetry.objects.filter(attempts=1).exists())
    assert sink.got == []
    assert "DOSSIER_OUTBOUND_ALLOWED_NETWORKS" in WebhookRetry.objects.get().error


def test_a_redirect_is_not_followed_and_the_reason_is_told() -> None:
    with http_sink() as inner, http_sink(lambda _: (307, {"Location": inner.url}, b"")) as sink:
        hook(sink.url)
        ticket()
        deliver(lambda: WebhookRetry.objects.filter(attempts=1).exists())
    assert inner.got == []
    assert (
        WebhookRetry.objects.get().error
        == f"answered 307: redirects are not followed; it leads to {inner.url}"
    )


def test_a_replay_tells_the_same_events_with_the_same_ids_and_bytes() -> None:
    with http_sink() as sink:
        webhook = hook(sink.url)
        start = webhook.place
        one = ticket()
        comment(one, "hello")
        deliver(lambda: at_end(webhook))
        first = [got.body for got in sink.got]
        replay(webhook, start, Context("user:alice"))
        deliver(lambda: at_end(webhook) and len(sink.got) >= 4)
    assert [got.body for got in sink.got[2:]] == first
    assert [got.headers.get("dossier-replay") for got in sink.got] == [None, None, "true", "true"]


def test_a_replay_while_a_round_is_under_way_counts() -> None:
    release = threading.Event()

    def answer(_: Got) -> tuple[int, dict[str, str], bytes]:
        release.wait(5)
        return 200, {}, b""

    with http_sink(answer) as sink:
        webhook = hook(sink.url, types=["incident.opened"])
        start = webhook.place
        ticket()
        Webhook.objects.update(position=str(start))
        courier = WebhookDispatcher()
        while not courier.busy:
            courier.step(datetime.now(UTC))
        Webhook.objects.update(position=str(Position.START))
        release.set()
        courier.wait(5)
        courier.step(datetime.now(UTC))
        courier.forget()
        deliver(lambda: at_end(webhook))
    assert len(sink.got) == 2


def test_two_senders_do_not_send_twice() -> None:
    with http_sink() as sink:
        webhook = hook(sink.url, types=["incident.opened"])
        with running(), running():
            for n in range(20):
                ticket(f"incident {n}")
            _until(lambda: at_end(webhook))
    assert sorted(number for number, _ in told(sink)) == list(range(1, 21))


COMMENTS = 30


def test_a_sender_that_is_killed_loses_nothing_and_keeps_the_order(log_database: str) -> None:
    environment = {
        **os.environ,
        "DATABASE_URL": log_database,
        "DOSSIER_OUTBOUND_ALLOWED_NETWORKS": "127.0.0.0/8",
        "DJANGO_SETTINGS_MODULE": "deploy.settings",
        "DOSSIER_SECRET_KEY": "tests",
    }
    command = [sys.executable, "manage.py", "deliver"]
    with http_sink(_slowly) as sink:
        webhook = hook(sink.url, types=["incident.commented"])
        one, two = ticket("one"), ticket("two")
        for n in range(COMMENTS):
            comment(one, f"{n}")
            comment(two, f"{n}")
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        try:
            _until(partial(_has, sink, COMMENTS))
        finally:
            process.kill()
            process.wait(60)
        deliver(lambda: at_end(webhook))
    for number in (1, 2):
        _all_in_order([int(text) for ticket_, text in told(sink) if ticket_ == number])


def _has(sink: Sink, requests: int) -> bool:
    return len(sink.got) >= requests


def _all_in_order(received: list[int]) -> None:
    """Every number is there, and a first sight of one comes after the first sight of all before."""
    assert list(dict.fromkeys(received)) == list(range(COMMENTS))


def _slowly(_: Got) -> tuple[int, dict[str, str], bytes]:
    time.sleep(0.01)
    return 200, {}, b""


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 3 * PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.05)


def test_what_others_are_told_of_is_passed_over_without_pause() -> None:
    with http_sink() as sink:
        webhook = hook(sink.url, teams=["network"])
        other = f"incident/{ticket(component='storage_cluster/s1')}"
        said = NewEvent("incident.commented", {"text": "x", "links": []}, datetime.now(UTC))
        append(other, [said] * 3_000, head(other), ALICE)
        commands.hand_over(other.partition("/")[2], "network", "theirs", ALICE)
        began = time.monotonic()
        with running():
            _until(lambda: at_end(webhook))
    assert len(sink.got) == 1
    assert time.monotonic() - began < 30 * 0.3  # thirty batches, and no pause after each


def test_a_long_ticket_takes_turns_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "TURN", 0.0)
    with http_sink() as sink:
        webhook = hook(sink.url, types=["incident.commented"])
        long, short = ticket(), ticket()
        for n in range(5):
            comment(long, f"{n}")
        comment(short, "short")
        deliver(lambda: at_end(webhook) and not WebhookRetry.objects.exists())
    assert [text for number, text in told(sink) if number == 1] == ["0", "1", "2", "3", "4"]
    assert Webhook.objects.get().failures == 0
