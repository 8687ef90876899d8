"""Live updates: one small ASGI process that tells browsers which incidents and runs changed.

One thread holds one Postgres connection. It LISTENs on the log's channel, reads what is new from the log and
hands it to the event loop, which fans it out to the browsers in memory. A lost notification costs at most a
second, a lost database connection none of the events: the thread goes on from its place in the log. Pages
poll when this process is away, so nothing depends on it.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
django.setup()

import structlog  # noqa: E402
from django.conf import settings  # noqa: E402
from django.db import InterfaceError, OperationalError, connection  # noqa: E402

from deploy.observability.heartbeats import beating  # noqa: E402
from frontend.live import LONGEST, Change, changes_in, holder, watched_types  # noqa: E402
from ingest.queries import LOG_CHANNEL, Position, read_all, watermark  # noqa: E402

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

CLIENTS = 500
"""Browsers that may listen at once; more are sent away and poll."""
OF_ONE = 40
"""Browser windows of one person among them, so that nobody takes everybody's places."""
WAITING = 200
"""Most messages queued for a slow browser; beyond it, one message to reload the page."""
REMEMBERED = 1000
"""Changes kept for browsers that come back after a break."""
MANY = 50
"""So many changes at once are one message: read the page again."""
HEARTBEAT = 15.0  # seconds
POLL, ALERT, ALERT_POLL = 1.0, 0.25, 0.02  # seconds; as in ingest.log.read
RETRY = 2.0  # seconds until a lost database is tried again
EVENTS_HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)

BYE = b"event: bye\ndata: {}\n\n"
"""The stream ends by our wish; the page asks for a new token."""

log = structlog.get_logger("live")


def _reset(position: str) -> bytes:
    return f"event: reset\nid: {position}\ndata: {{}}\n\n".encode()


@dataclass(eq=False)
class Client:
    account: str = ""
    waiting: asyncio.Queue[bytes] = field(default_factory=lambda: asyncio.Queue(WAITING))

    def put(self, message: bytes, position: str) -> None:
        if self.waiting.full():
            while not self.waiting.empty():
                self.waiting.get_nowait()
            message = _reset(position)
        self.waiting.put_nowait(message)


class Hub:
    """Listeners and the latest changes. Lives in the event loop; nothing here blocks."""

    def __init__(self) -> None:
        self.clients: set[Client] = set()
        self.recent: deque[Change] = deque(maxlen=REMEMBERED)
        self.complete_since = ""
        """The position after which `recent` has every change."""

    def start_at(self, position: str) -> None:
        """Mark the beginning: earlier changes are unknown here, so pages that listen already have to be read again."""
        self.complete_since = position
        for client in self.clients:
            client.put(_reset(position), position)

    def send_away(self) -> None:
        """Nothing is to be heard here: whoever listens asks the pages how things stand, and comes again by them."""
        for client in self.clients:
            client.put(BYE, "")

    def publish(self, changes: list[Change]) -> None:
        for change in changes:
            if len(self.recent) == REMEMBERED:
                self.complete_since = self.recent[0].position
            self.recent.append(change)
        last = changes[-1].position
        messages = [change.message() for change in changes] if len(changes) <= MANY else [_reset(last)]
        for client in self.clients:
            for message in messages:
                client.put(message, last)

    def has_room_for(self, account: str) -> bool:
        return len(self.clients) < CLIENTS and sum(one.account == account for one in self.clients) < OF_ONE

    def join(self, after: str, account: str = "") -> Client:
        """A new listener, who has seen everything up to `after` ("": up to now)."""
        client = Client(account)
        if after and (not self.complete_since or after < self.complete_since):
            client.put(_reset(self.recent[-1].position if self.recent else after), after)
        elif after:
            missed = [change for change in self.recent if change.position > after]
            for change in missed if len(missed) <= MANY else ():
                client.put(change.message(), change.position)
            if len(missed) > MANY:
                client.put(_reset(missed[-1].position), after)
        self.clients.add(client)
        return client


class Tail(threading.Thread):
    """Reads the log from now on and has the hub, in its event loop, publish what changed."""

    def __init__(self, hub: Hub, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(name="tail", daemon=True)
        self.hub, self.loop = hub, loop
        self.stopping = threading.Event()
        self.place: Position | None = None

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                self._follow()
            except (OperationalError, InterfaceError) as error:
                log.warning("database away", error=str(error).strip())
                if connection.connection is None:  # not even reached: a restart of a moment is nobody's news
                    self.loop.call_soon_threadsafe(self.hub.send_away)
                connection.close()
                self.stopping.wait(RETRY)
            except Exception:  # the shell around the thread: without it pages would wait for news for ever
                log.exception("live updates failed")
                self.place = None  # beyond what could not be read
                connection.close()
                self.stopping.wait(RETRY)
        connection.close()

    def _follow(self) -> None:
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.execute(f"LISTEN {LOG_CHANNEL}")
        if self.place is None:
            self.place = watermark()
            self.loop.call_soon_threadsafe(self.hub.start_at, str(self.place))
        types = watched_types()
        alert_until = 0.0
        while not self.stopping.is_set():
            if events := read_all(self.place, 500, types):
                self.place = events[-1].position
                self.loop.call_soon_threadsafe(self.hub.publish, changes_in(events))
                alert_until = time.monotonic() + ALERT
            elif self._rang(ALERT_POLL if time.monotonic() < alert_until else POLL):
                alert_until = time.monotonic() + ALERT

    def _rang(self, seconds: float) -> bool:
        listener = connection.connection
        if not listener.notifies and select.select([listener], [], [], seconds)[0]:
            with connection.wrap_database_errors:
                listener.poll()
        rang = bool(listener.notifies)
        listener.notifies.clear()
        return rang


hub = Hub()
tail: Tail | None = None


async def live(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
    elif scope["type"] == "http":
        await _answer(scope, receive, send)


application = beating(live, lifespan=True)


async def _lifespan(receive: Receive, send: Send) -> None:
    global tail
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            tail = Tail(hub, asyncio.get_running_loop())
            tail.start()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            if tail is not None:
                tail.stopping.set()
            await send({"type": "lifespan.shutdown.complete"})
            return


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    headers = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    query = parse_qs(scope["query_string"].decode("latin-1"))
    path = scope["path"].rstrip("/")
    if scope["method"] not in ("GET", "HEAD"):
        await _short(send, 405, "only GET")
    elif path.endswith("/healthz"):
        # Until it has its place in the log every new client gets a message to reload the page.
        alive = tail is not None and tail.is_alive() and bool(hub.complete_since)
        await _short(send, 200 if alive else 503, f"{len(hub.clients)} listening")
    elif not path.endswith("/events"):
        await _short(send, 404, "live updates are at /events")
    elif (account := holder(query.get("token", [""])[0])) is None:
        await _short(send, 403, "the token is missing, wrong or too old", _cors(headers))
    elif not hub.has_room_for(account):
        await _short(
            send, 503, "too many listeners, poll instead", (*_cors(headers), (b"retry-after", b"30"))
        )
    else:
        after = headers.get("last-event-id") or query.get("after", [""])[0]
        await _stream(after[:100], account, _cors(headers), receive, send)


async def _stream(
    after: str, account: str, extra: Iterable[tuple[bytes, bytes]], receive: Receive, send: Send
) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [*EVENTS_HEADERS, *extra]})
    client = hub.join(after, account)
    gone = asyncio.ensure_future(_disconnected(receive))
    end = time.monotonic() + LONGEST
    try:
        await _body(send, b"retry: 3000\n: listening\n\n")
        while not gone.done() and time.monotonic() < end:
            waiting = asyncio.ensure_future(client.waiting.get())
            await asyncio.wait({waiting, gone}, timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                await _body(send, waiting.result())
            else:
                waiting.cancel()
                if not gone.done():
                    await _body(send, b": still here\n\n")
        if not gone.done():
            await _body(send, BYE)
            await _body(send, b"", more=False)
    finally:
        hub.clients.discard(client)
        gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def _short(send: Send, status: int, text: str, extra: Iterable[tuple[bytes, bytes]] = ()) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await _body(send, text.encode() + b"\n", more=False)


def _cors(headers: dict[str, str]) -> tuple[tuple[bytes, bytes], ...]:
    """DOSSIER_PUBLIC_URL may read, and the same host on another port. The token, not the origin, is the lock."""
    origin = headers.get("origin", "")
    same_host = urlsplit(origin).hostname == urlsplit(f"//{headers.get('host', '')}").hostname
    if origin and (same_host or origin == settings.PUBLIC_URL):
        return ((b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin"))
    return ()
