"""Signals sent to other systems: seals of the log, and a dead man's ping.

Both are loops of `manage.py deliver`: the process that calls people is the one whose silence must be heard.
"""

from __future__ import annotations

import json
import smtplib
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import connection

from deploy.observability.health import delays, reasons
from incidents.security.outbound import AddressRefusedError, UnreachableError, post
from incidents.worker.parts import alive
from ingest.commands import (
    TIMESTAMP_REQUEST,
    InvalidTimestampError,
    Leader,
    LogIntegrityError,
    check_timestamp,
    expect_seal,
    newest_noted_seal,
    note_seal,
    request_timestamp,
    text_of_seal,
    timestamp_authorities,
)
from ingest.queries import newest_seal, now_utc, unsealed_since

EVERY = 20.0
"""Seconds between looks for a new seal."""
MAIL_EVERY = 86400.0
"""Seconds between two mails with a seal to one address."""
PING_EVERY = 60.0
"""Seconds between pings."""
STAMP_EVERY = 3600.0
"""Seconds between two seals that an authority is asked to stamp."""
STAMP_AGAIN = 300.0
"""Seconds after an authority did not answer until it is asked again."""
STAMP_SIZE = 100_000
"""Bytes of the answer of an authority, certificates included."""
UNSEALED = 600.0
"""Seconds within which an event is sealed; a log without new seals proves nothing of its end."""
PART = "seals"

log = structlog.get_logger("outside")


class UnsealedError(RuntimeError):
    """Nobody seals the log."""


class Notary:
    """Notes each newest seal in a file, has it stamped and sends it on. `step` is one look."""

    def __init__(self, file: Path, targets: Sequence[str], authority: str = "") -> None:
        self.file, self.targets, self.authority = file, targets, authority
        self._sent: dict[str, tuple[str, float]] = {}
        self._stamped, self._ask_at = "", 0.0

    def step(self, leads: bool = True) -> None:
        """`leads`: whether this process sends seals on; each notes them in its own file.

        Raises OSError where the file cannot be written, LogIntegrityError where the log has lost what was noted."""
        noted = newest_noted_seal(self.file)
        if noted is not None:
            expect_seal(noted)
        if (seal := newest_seal()) is None:
            return
        text = text_of_seal(seal)
        if noted != text:
            note_seal(self.file, text)
        if self.authority and text != self._stamped and time.monotonic() >= self._ask_at:
            self._stamp(text)
        for target in self.targets if leads else ():
            self._send(target, text)

    def _send(self, target: str, seal: str) -> None:
        before, at = self._sent.get(target, ("", -MAIL_EVERY))
        is_mail = "://" not in target
        if before == seal or (is_mail and time.monotonic() - at < MAIL_EVERY):
            return
        try:
            (_mail if is_mail else _post)(target, seal)
        except (OSError, smtplib.SMTPException, AddressRefusedError, UnreachableError) as error:
            log.warning("seal not sent", to=target, error=str(error))
        else:
            self._sent[target] = (seal, time.monotonic())

    def _stamp(self, seal: str) -> None:
        try:
            note_seal(self.file, seal, _timestamp(self.authority, seal))
        except (InvalidTimestampError, AddressRefusedError, UnreachableError, OSError, ValueError) as error:
            self._ask_at = time.monotonic() + STAMP_AGAIN
            log.warning("seal not stamped", authority=self.authority, error=str(error))
        else:
            self._stamped, self._ask_at = seal, time.monotonic() + STAMP_EVERY


def _timestamp(authority: str, seal: str) -> bytes:
    """The authority's answer about the seal, checked."""
    trusted = settings.SEAL_TSA_CERTIFICATES
    roots = timestamp_authorities(Path(trusted) if trusted else None)
    question, nonce = request_timestamp(seal)
    reply = post(authority, question, {"Content-Type": TIMESTAMP_REQUEST}, most=STAMP_SIZE)
    if not reply.taken:
        raise UnreachableError(f"answered {reply.status}")
    check_timestamp(reply.body, seal, roots, nonce)
    return reply.body


def _mail(to: str, seal: str) -> None:
    how = f"manage.py verify_log --expect {seal}"
    body = f"Newest seal of the log of {settings.PUBLIC_URL}:\n\n{seal}\n\nTo compare: {how}\n"
    EmailMessage("Dossier: seal of the log", body, to=[to.removeprefix("mailto:")]).send()


def _post(url: str, seal: str) -> None:
    body = {"seal": seal, "from": settings.PUBLIC_URL, "at": now_utc().isoformat()}
    reply = post(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    if not reply.taken:
        raise UnreachableError(f"answered {reply.status}")


def note_seals(stop: threading.Event) -> None:
    """Loop of the notary. What it cannot do is logged, and after a minute `/readyz` names it."""
    notary = Notary(settings.SEAL_FILE, settings.SEAL_RECIPIENTS, settings.SEAL_TSA_URL)
    leader = Leader("seals")
    if notary.targets:
        leader.start()
    try:
        while not stop.is_set():
            try:
                notary.step(leader.leads)
                expect_no_gap()
                alive(PART, now_utc())
            except (LogIntegrityError, UnsealedError, OSError) as error:
                log.error("seals", error=str(error))
                alive(PART, None, 0, str(error))
            stop.wait(EVERY)
    finally:
        if notary.targets:
            leader.close()


def expect_no_gap() -> None:
    """Raises UnsealedError where an event has waited longer than UNSEALED for its seal."""
    since = unsealed_since()
    if since is not None and (late := (now_utc() - since).total_seconds()) > UNSEALED:
        raise UnsealedError(f"events of {late:.0f} s ago have no seal; does a worker run?")


def ping(url: str) -> bool:
    """Send the dead man's ping if this node is ready and nothing is late; whether it was sent and taken."""
    if found := reasons() or delays():
        log.warning("no dead man's ping", reasons=found)
        return False
    try:
        reply = post(url, b"", method="GET")
    except (AddressRefusedError, UnreachableError) as error:
        log.warning("dead man's ping failed", error=str(error))
        return False
    return reply.taken


def keep_pinging(stop: threading.Event) -> None:
    """Loop of the ping; waits for the end where none is set up."""
    while settings.DEAD_MAN_URL and not stop.is_set():
        ping(settings.DEAD_MAN_URL)
        connection.close()
        stop.wait(PING_EVERY)
    stop.wait()
