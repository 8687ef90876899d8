"""The endpoint of mail: an SMTP server that says 250 when what a mail says is committed. Thin; it relays nothing.

Who may send: whoever knows an integration's address, whose local part is a secret of 160 bits made of its key, in lower
case, because mail servers do not keep case. What is refused for good is answered with 5xx, so that the sending server
tells its sender; whatever may pass is answered with 4xx, and the sending server keeps the mail and comes again (RFC
5321, 4.2.1). Between them no mail is lost that was promised.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
from asyncio import transports
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import ClassVar, TypeVar, cast

from aiosmtpd.smtp import SMTP, Envelope, Session
from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections

from ingest import heartbeat
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.api import keys
from ingest.api.admission import OverloadedError, admitted
from ingest.api.problem_details import down
from ingest.api.rejections import note
from ingest.integrations import mail
from ingest.integrations.generic import apply
from ingest.integrations.normalized import InvalidPayloadError

ENDPOINT = "mail"
MOST_WHOLE = 2**20
"""Bytes of a mail whose attachments are kept, too."""
THREADS = 4
"""Mails that are stored at the same time, each with a connection to the database."""
MOST_WAITING = 64
MOST_CONNECTIONS = 100
LONGEST_LINE = 2**16
"""RFC 5321 allows 1,000; programs write longer ones, and their alerts count, too."""
MEDIA_TYPE = "message/rfc822"
TURN = 1.0
"""Seconds between two reports of the event loop's progress."""
LONGEST_TURN = 10.0
LAST_WORDS = 2.0
"""Seconds that a connection has to finish once the server is stopped."""
LATER = "451 4.3.0 Not stored: {}. Send it again later"

T = TypeVar("T")
_log = logging.getLogger(__name__)


def integration_of(address: str) -> keys.Key | None:
    """The integration of an address, `TOKEN@anything` or `anything+TOKEN@anything`; None where there is none.

    Raises django.db.Error.
    """
    key = keys.find_by_mail(_token(address))
    return key if key is not None and key.allows("alerts") and key.allows_format(ENDPOINT) else None


def _token(address: str) -> str:
    local, _, _ = address.rpartition("@")
    return local.rpartition("+")[2].lower()


def store(address: str, raw: bytes) -> str:
    """Commit what a mail says; the answer to its sender. Raises nothing but what is wrong with this program."""
    key = None
    try:
        key = integration_of(address)
        if key is None:
            return "550 5.1.1 No integration has this address any more"
        with admitted(key.name, ENDPOINT):
            how = mail.DEFAULT if key.mapping is None else apply.mapping(key.mapping)
            parsed = mail.alerts(raw, how)
            if parsed.refused and not parsed.alerts:
                return _refused(key, str(parsed.refused[0]))
            stored = raw if len(raw) <= MOST_WHOLE else mail.headers_of(raw)
            payload = mail.without_token(stored, _token(address))
            taken = receive(parsed, Delivery(key.name, ENDPOINT, MEDIA_TYPE, payload[:MOST_WHOLE]))
    except InvalidPayloadError as error:
        return _refused(key, f"this mail {error}")
    except OverloadedError as error:
        return f"451 4.7.1 {error}"
    except (OperationalError, InterfaceError) as error:
        _log.warning("a mail was put off: %s", error)
        return LATER.format(down(error).partition(";")[0])
    return f"250 2.0.0 Committed, receipt {taken.receipt}"


def _refused(key: keys.Key | None, why: str) -> str:
    if key is not None:
        note(key.name, ENDPOINT, 554, why)
    return f"554 5.6.0 Not stored: {_one_line(why)}"


def _one_line(text: str) -> str:
    return text.encode("ascii", "replace").decode().replace("\r", " ").replace("\n", " ")[:300]


class SmtpHandler:
    """Callbacks of the server at each step of a mail."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="mail")
        self._waiting = 0

    async def handle_MAIL(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address or "<>"  # programs write the empty one, which says: answer to nobody
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if envelope.rcpt_tos:
            # One answer cannot say that a mail is stored for one integration and not for another.
            return "452 4.5.3 One integration at a time; send it again for this one"
        try:
            found = await self._in_thread(lambda: integration_of(address))
        except (OperationalError, InterfaceError) as error:
            _log.warning("a mail was put off: %s", error)
            return LATER.format(down(error).partition(";")[0])
        if found is None:
            return "550 5.1.1 No integration has this address"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        raw = envelope.original_content or b""
        if self._waiting >= MOST_WAITING:
            return LATER.format("too many mails wait to be stored")
        return await self._in_thread(lambda: store(envelope.rcpt_tos[0], raw))

    async def handle_exception(self, error: Exception) -> str:
        _log.error("a mail could not be handled", exc_info=error)
        return LATER.format("something went wrong here")  # the server's own answer would be 500: never again

    async def _in_thread(self, work: Callable[[], T]) -> T:
        def done() -> T:
            close_old_connections()  # as at the start of a request
            return work()

        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, done)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Waits for the mails that are being stored."""
        self._threads.shutdown(wait=True)


class _Server(SMTP):
    """One connection. The library bounds a mail, but not a line that never ends; here a connection's bytes are."""

    line_length_limit = LONGEST_LINE
    open: ClassVar[set[_Server]] = set()

    def __init__(self, endpoint: SmtpHandler, tls: ssl.SSLContext | None) -> None:
        super().__init__(
            endpoint,
            data_size_limit=settings.INBOUND_EMAIL_MAX_BODY,
            enable_SMTPUTF8=True,
            hostname=settings.INBOUND_EMAIL_DOMAIN,
            ident="Dossier",
            tls_context=tls,
        )
        self._taken = 0

    def connection_made(self, transport: transports.BaseTransport) -> None:
        self.open.add(self)
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.open.discard(self)
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        self._taken += len(data)
        if self._taken > 2 * settings.INBOUND_EMAIL_MAX_BODY and self.transport is not None:
            cast(transports.WriteTransport, self.transport).abort()
            return
        super().data_received(data)

    async def smtp_DATA(self, arg: str) -> None:
        await super().smtp_DATA(arg)
        self._taken = 0


class _Full(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: transports.BaseTransport) -> None:
        writing = cast(transports.WriteTransport, transport)
        writing.write(b"421 4.3.2 Too many connections; come again later\r\n")
        writing.close()


def certificate() -> ssl.SSLContext | None:
    """For STARTTLS, where DOSSIER_INBOUND_EMAIL_CERTIFICATE names a file. Raises OSError, ssl.SSLError."""
    if not settings.INBOUND_EMAIL_CERTIFICATE:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(
        settings.INBOUND_EMAIL_CERTIFICATE, settings.INBOUND_EMAIL_CERTIFICATE_KEY or None
    )
    return context


async def listen(
    where: tuple[str, int] | socket.socket, endpoint: SmtpHandler, tls: ssl.SSLContext | None = None
) -> asyncio.Server:
    """A server of this loop, on a socket that is bound or at an address; its port may be 0, for one that is free.

    Raises OSError when the port is taken.
    """
    logging.getLogger("mail.log").setLevel(logging.WARNING)  # its lines hold addresses, which are secrets

    def connected() -> asyncio.BaseProtocol:
        return _Full() if len(_Server.open) >= MOST_CONNECTIONS else _Server(endpoint, tls)

    loop = asyncio.get_running_loop()
    if isinstance(where, socket.socket):
        return await loop.create_server(connected, sock=where)
    return await loop.create_server(connected, *where)


async def serve(
    where: tuple[str, int] | socket.socket, tls: ssl.SSLContext | None, ready: Callable[[int], None]
) -> None:
    """Serve until SIGTERM or Ctrl-C; mails that are being stored are finished. `ready` hears the port. Raises
    OSError."""
    end, endpoint = asyncio.Event(), SmtpHandler()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    server = await listen(where, endpoint, tls)
    ready(server.sockets[0].getsockname()[1])
    while not end.is_set():
        heartbeat.progress("event loop", LONGEST_TURN)
        with suppress(TimeoutError):
            await asyncio.wait_for(end.wait(), TURN)
    heartbeat.rest("event loop")
    server.close()
    await _end_connections()
    endpoint.close()


async def _end_connections() -> None:
    """Wait until senders have said what they came for, then send away those that are left, as RFC 5321 3.8 has it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + LAST_WORDS
    while _Server.open and loop.time() < until:
        await asyncio.sleep(0.02)
    for one in list(_Server.open):
        if one.transport is not None:
            transport = cast(transports.WriteTransport, one.transport)
            transport.write(b"421 4.3.2 The server is restarted; come again later\r\n")
            transport.close()
    await asyncio.sleep(0)  # what was written goes out
