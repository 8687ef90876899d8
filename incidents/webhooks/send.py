"""One delivery over the network, and an incident's deliveries one after the other. Touches no database."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from incidents.domain.webhooks import PATIENCE, Outcome, outcome, retry_after_of, sign
from incidents.security.outbound import AddressRefusedError, UnreachableError, post
from incidents.webhooks.deliveries import WebhookDelivery

TIMEOUT = 10.0
"""Seconds that a receiver has to answer."""
TURN = 15.0
"""Seconds after which an incident with more to tell waits for the next round, so that others get theirs."""


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a webhook's deliveries and their signing keys."""

    name: str
    url: str
    secrets: tuple[str, ...]
    replayed_upto: str = ""


@dataclass(frozen=True, slots=True)
class Try:
    """Result of one delivery. `status` is None where no answer came; `answer` is its beginning, or why not."""

    letter: WebhookDelivery
    at: datetime
    milliseconds: int
    outcome: Outcome
    status: int | None
    answer: str
    wish: float | None = None


@dataclass(slots=True)
class EndpointFailures:
    """Shared state of the threads of one round: an endpoint that fails and fails is not asked for every incident."""

    failures: int = 0
    answered: bool = False

    @property
    def enough(self) -> bool:
        return self.failures >= PATIENCE and not self.answered


def send(address: Address, letter: WebhookDelivery, timeout: float = TIMEOUT) -> Try:
    began, now = time.monotonic(), datetime.now(UTC)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Dossier-Webhooks/1",
        "Dossier-Webhook": address.name,
        "Dossier-Event": letter.type,
        "Dossier-Id": letter.event,
        "Dossier-Signature": sign(address.secrets, int(now.timestamp()), letter.body),
    }
    if letter.position <= address.replayed_upto:
        headers["Dossier-Replay"] = "true"
    rows: Outcome = "later"
    status, wish = None, None
    try:
        reply = post(address.url, letter.body, headers, timeout=timeout, most=500)
        rows, status, answer, wish = (
            outcome(reply.status),
            reply.status,
            reply.text,
            retry_after_of(reply.headers),
        )
        if 300 <= reply.status < 400:
            answer = f"redirects are not followed; it leads to {reply.headers.get('location', 'nowhere')}"
    except (AddressRefusedError, UnreachableError) as error:
        answer = str(error)
    return Try(letter, now, int((time.monotonic() - began) * 1000), rows, status, answer[:500], wish)


def send_in_order(
    address: Address, letters: Sequence[WebhookDelivery], trouble: EndpointFailures
) -> list[Try]:
    """An incident's deliveries up to the first that has to wait, or until its turn is over."""
    tries: list[Try] = []
    end = time.monotonic() + TURN
    for letter in letters:
        if trouble.enough or (tries and time.monotonic() > end):
            break
        tries.append(send(address, letter))
        if tries[-1].outcome in ("later", "gone"):
            trouble.failures += 1
            break
        trouble.answered = True
    return tries
