"""Receivers that listen on this machine, and people who are reached by them."""

from __future__ import annotations

import email
import email.policy
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import connection
from django.test import override_settings

from incidents import commands
from incidents.commands import Report
from incidents.domain.values import Severity
from incidents.incident.models import TimelineEntry
from incidents.notifications.dispatcher import deliver_due
from incidents.notifications.models import ContactMethod, Notification, Preferences
from incidents.notifications.queue import notify
from ingest.queries import Context

SETUP = {
    "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
    "EMAIL_HOST": "127.0.0.1",
    "EMAIL_IS_SET_UP": True,
    "OUTBOUND_ALLOWED_NETWORKS": (ip_network("127.0.0.0/8"),),
}


class MailSink:
    """A mail server; `answers` are what it says to the next recipients, before it takes everything."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.answers: list[str] = []

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        del server, session, options
        if self.answers:
            return self.answers.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 ok"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        del server, session
        assert isinstance(envelope.content, bytes)
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.mails.append(message)
        return "250 taken"

    @property
    def subjects(self) -> list[str]:
        return [str(mail["Subject"]) for mail in self.mails]


class _AnyPort(Controller):
    """A controller on the port that the system gave, where 0 was asked for."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        super()._trigger_server()  # type: ignore[no-untyped-call]


@contextmanager
def mail_server() -> Iterator[tuple[MailSink, int]]:
    """A mail server and its port."""
    sink = MailSink()
    controller = _AnyPort(sink, hostname="127.0.0.1", port=0)
    controller.start()
    try:
        yield sink, controller.port
    finally:
        controller.stop()


class HookSink:
    """A web server; `answers` are (status, headers) that it gives next, before it takes everything.

    `silent` makes it take requests and answer none until it is set.
    """

    def __init__(self) -> None:
        self.taken: list[tuple[Mapping[str, str], Any]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.silent: threading.Event | None = None
        self.asked = threading.Event()
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                sink.asked.set()
                if sink.silent is not None:
                    sink.silent.wait(60)
                    return
                status, headers = sink.answers.pop(0) if sink.answers else (200, {})
                if status < 300:
                    sink.taken.append((dict(self.headers), body))
                self.send_response(status)
                for name, value in {**headers, "Content-Length": "0"}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/page"


@contextmanager
def hook_sink() -> Iterator[HookSink]:
    """A web server that may be reached."""
    with (
        override_settings(OUTBOUND_ALLOWED_NETWORKS=SETUP["OUTBOUND_ALLOWED_NETWORKS"]),
        hook_server() as sink,
    ):
        yield sink


@contextmanager
def hook_server() -> Iterator[HookSink]:
    sink = HookSink()
    thread = threading.Thread(target=sink.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        if sink.silent is not None:
            sink.silent.set()
        sink.server.shutdown()
        sink.server.server_close()
        thread.join(5)


def person(name: str = "alice", **wishes: Any) -> User:
    user: User = get_user_model().objects.create(username=name, email=f"{name}@example.com")
    if wishes:
        Preferences.objects.create(user=user, **wishes)
    return user


def hook(user: User | None, url: str, name: str = "hook", **fields: Any) -> ContactMethod:
    return ContactMethod.objects.create(user=user, name=name, kind="webhook", address=url, **fields)


def ticket(title: str = "Disks are slow", severity: Severity = "error") -> str:
    return commands.open_incident(Report(title, severity=severity), Context("user:bob")).incident.id


def call(
    incident: str, who: str = "alice", *, key: str = "", urgent: bool = True, when: datetime | None = None
) -> str:
    name = key or f"call-{uuid.uuid4()}"
    notify(who, incident, name, "you are on call", urgent, Context("system:test"), when or datetime.now(UTC))
    return name


def events(incident: str) -> list[tuple[str, str | None, str]]:
    """Outcome, method and reason of each attempt."""
    rows = TimelineEntry.objects.filter(incident__pk=incident, type="incident.notified").order_by("version")
    return [(row.body["outcome"], row.body["method"], row.body["why"]) for row in rows]


def outcomes(incident: str) -> list[str]:
    return [outcome for outcome, _, _ in events(incident)]


def ended(key: str) -> tuple[str, str]:
    row = Notification.objects.get(key=key)
    return row.state, row.outcome


def later(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def deliver(*after: float) -> int:
    """Deliver what is due after so many seconds, each time."""
    return sum(deliver_due(later(seconds)) for seconds in after or (0.0,))


def is_there(processes: Sequence[int]) -> bool:
    """Whether a session of these is left: a server that is busy ends one, with its locks, a moment later."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = ANY(%s))", (list(processes),))
        return bool(cursor.fetchone()[0])


def until(done: Callable[[], bool], patience: float = 20.0) -> None:
    deadline = time.monotonic() + patience
    while not done():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)
