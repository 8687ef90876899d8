"""Webhooks, receivers and the courier between them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from incidents import commands
from incidents.commands import Report
from incidents.security import encryption
from incidents.webhooks.dispatcher import WebhookDispatcher, run
from incidents.webhooks.models import Webhook
from ingest.queries import Context, Position, watermark
from tests.integration.sinks import Got, Sink

ALICE = Context("user:alice")
SECRET = "whsec_test"
PATIENCE = 60.0


def hook(url: str, name: str = "hook", **fields: Any) -> Webhook:
    """A webhook that begins at the end of the log."""
    return Webhook.objects.create(
        **{
            "name": name,
            "url": url,
            "secret": encryption.encrypt(SECRET),
            "position": str(watermark()),
            **fields,
        }
    )


def ticket(title: str = "Disks are slow", **fields: Any) -> str:
    return commands.open_incident(Report(title, **fields), ALICE).incident.id


def comment(id: str, text: str) -> None:
    commands.comment(id, text, ALICE)


def told(sink: Sink) -> list[tuple[int, str]]:
    """Incident and what was said of it, as received."""
    return [_said(got) for got in list(sink.got)]


def _said(got: Got) -> tuple[int, str]:
    body = json.loads(got.body)
    return body["incident"]["number"], body["event"].get("text") or body["type"]


def bodies(sink: Sink) -> list[dict[str, Any]]:
    return [json.loads(got.body) for got in list(sink.got)]


def deliver(until: Callable[[], bool], now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
    """Steps of a courier until something holds."""
    courier, deadline = WebhookDispatcher(), time.monotonic() + PATIENCE
    try:
        while not (until() and not courier.busy):
            assert time.monotonic() < deadline, "it never came to that"
            courier.step(now())
            courier.wait(0.05)
            if not courier.busy:
                time.sleep(0.01)
    finally:
        courier.forget()


def later(**span: float) -> Callable[[], datetime]:
    return lambda: datetime.now(UTC) + timedelta(**span)


@contextmanager
def running() -> Iterator[None]:
    """A sender in a thread of its own, with a connection of its own."""
    stop = threading.Event()

    def work() -> None:
        try:
            run(stop, 0.02)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def at_end(webhook: Webhook) -> bool:
    """Whether all events that the log has now were told."""
    webhook.refresh_from_db()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT epoch, txid::text AS txid_text, seq FROM log_event WHERE type LIKE 'incident.%%'"
            " ORDER BY epoch DESC, log_event.txid DESC, seq DESC LIMIT 1"
        )
        row = cursor.fetchone()
    return row is None or webhook.place >= Position(row[0], int(row[1]), row[2])
