"""What leaves this node by itself, so that others notice what it cannot tell: seals of the log, and a dead man's ping.

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

from deploy.health import reasons
from incidents.delivery.alive import alive
from incidents.posting import Refused, Unreachable, post
from ingest.commands import BadLog, expect_seal, newest_noted_seal, note_seal, text_of_seal
from ingest.queries import newest_seal, now_utc

EVERY = 20.0
"""Seconds between looks for a new seal."""
MAIL_EVERY = 86400.0
"""Seconds between two mails with a seal to one address."""
PING_EVERY = 60.0
"""Seconds between pings."""
PART = "seals"

log = structlog.get_logger("outside")


class Notary:
    """Notes each newest seal in a file and sends it on. `step` is one look."""

    def __init__(self, file: Path, targets: Sequence[str]) -> None:
        self.file, self.targets = file, targets
        self._sent: dict[str, tuple[str, float]] = {}

    def step(self) -> None:
        """Raises OSError where the file cannot be written, BadLog where the log has lost what was noted."""
        noted = newest_noted_seal(self.file)
        if noted is not None:
            expect_seal(noted)
        if (seal := newest_seal()) is None:
            return
        text = text_of_seal(seal)
        if noted != text:
            note_seal(self.file, seal)
        for target in self.targets:
            self._send(target, text)

    def _send(self, target: str, seal: str) -> None:
        before, at = self._sent.get(target, ("", -MAIL_EVERY))
        is_mail = "://" not in target
        if before == seal or (is_mail and time.monotonic() - at < MAIL_EVERY):
            return
        try:
            (_mail if is_mail else _post)(target, seal)
        except (OSError, smtplib.SMTPException, Refused, Unreachable) as error:
            log.warning("seal not sent", to=target, error=str(error))
        else:
            self._sent[target] = (seal, time.monotonic())


def _mail(to: str, seal: str) -> None:
    how = f"manage.py verify_log --expect {seal}"
    body = f"Newest seal of the log of {settings.BASE_URL}:\n\n{seal}\n\nTo compare: {how}\n"
    EmailMessage("Dossier: seal of the log", body, to=[to.removeprefix("mailto:")]).send()


def _post(url: str, seal: str) -> None:
    body = {"seal": seal, "from": settings.BASE_URL, "at": now_utc().isoformat()}
    reply = post(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    if not reply.taken:
        raise Unreachable(f"answered {reply.status}")


def note_seals(stop: threading.Event) -> None:
    """Loop of the notary. What it cannot do is logged, and after a minute `/readyz` names it."""
    notary = Notary(settings.SEALS_FILE, settings.SEALS_TO)
    while not stop.is_set():
        try:
            notary.step()
            alive(PART, now_utc())
        except (BadLog, OSError) as error:
            log.error("seals", error=str(error))
            alive(PART, None, 0, str(error))
        stop.wait(EVERY)


def ping(url: str) -> bool:
    """Send the dead man's ping if this node is ready; whether it was sent and taken."""
    if found := reasons():
        log.warning("no dead man's ping", reasons=found)
        return False
    try:
        reply = post(url, b"", method="GET")
    except (Refused, Unreachable) as error:
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
