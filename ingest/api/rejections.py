"""Rejected requests with a valid key: number, time and reason of the latest, by key and endpoint.

One row per key and endpoint, so that a sender with a thousand rejections per second grows no table. Each process writes
a row at most once a second and counts the rejections in between.
"""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from django.db import InterfaceError, OperationalError, connection
from django.http import HttpResponse

from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.db import database
from ingest.integrations.normalized import Alert, Notes, Parsed

EVERY: Final = 1.0
"""Seconds between two writes of a process about the same key and endpoint."""
REASON: Final = 500
MOST: Final = 10_000
"""Keys and endpoints in memory, per process."""
LOST: Final = frozenset({400, 413, 415, 422})
"""Statuses of alert endpoints after which senders do not retry: the alerts are lost."""
ALERT_FORMATS: Final = frozenset(
    {"alertmanager-api", "alertmanager", "grafana", "generic", "cloudevents", "pagerduty", "opsgenie"}
)
WARNED_FOR: Final = timedelta(hours=1)
"""Duration of the alert about rejected alerts; another rejection prolongs it."""
SHOWN: Final = frozenset({400, 403, 409, 413, 415, 422, 554})
"""Statuses (554: mail) with a cause at the sender; temporary ones are left out."""

log = structlog.get_logger("endpoints")
_lock = threading.Lock()
_noted: dict[tuple[str, str, str], tuple[float, int]] = {}

_SQL = """
INSERT INTO integration_rejection (integration, endpoint, status, reason, times, at) VALUES (%s, %s, %s, %s, %s, now())
ON CONFLICT (integration, endpoint) DO UPDATE SET status = excluded.status, reason = excluded.reason,
    times = integration_rejection.times + excluded.times, at = excluded.at
"""


def note(integration: str, endpoint: str, status: int, reason: str) -> None:
    """Record the rejection of a request. An unavailable database is logged, not raised: the sender has its answer,
    and the next rejection that is written includes the count."""
    if status not in SHOWN:
        return
    place, now = (database.name(), integration, endpoint), time.monotonic()
    with _lock:
        until, left_out = _noted.get(place, (0.0, 0))
        if now < until:
            _noted[place] = (until, left_out + 1)
            return
        if len(_noted) >= MOST:
            _noted.clear()
        _noted[place] = (now + EVERY, 0)
    try:
        with connection.cursor() as cursor:
            text = reason.replace("\0", "")[:REASON]
            cursor.execute(_SQL, (integration, endpoint, status, text, left_out + 1))
        if status in LOST and endpoint in ALERT_FORMATS and _is_known(integration):
            warn(
                integration,
                endpoint,
                f"Alerts from {integration} are rejected ({status}): {text}",
                f"The endpoint {endpoint} rejected a request of a known key. Most senders do not repeat it, so its"
                f" alerts are lost.\n\n{text}\n\nSee Integrations, {integration}.",
            )
    except (OperationalError, InterfaceError) as error:
        log.warning(
            "a rejection was not recorded", integration=integration, endpoint=endpoint, reason=str(error)
        )
        with _lock:
            until, since = _noted.get(place, (0.0, 0))
            _noted[place] = (until, since + left_out + 1)


def note_unread(integration: str, endpoint: str, reason: str) -> None:
    """Report a payload that was stored without an alert: its sender got a 2xx and reports nothing."""
    place, now = (database.name(), integration, f"{endpoint} unread"), time.monotonic()
    with _lock:
        until, _ = _noted.get(place, (0.0, 0))
        if now < until:
            return
        _noted[place] = (now + EVERY, 0)
    try:
        warn(
            integration,
            endpoint,
            f"Payloads from {integration} are stored but contain no alert: {reason}",
            "They need a mapping. The page of the integration shows the latest payload with a mapping to try and save."
            f"\n\n{reason}",
            "unread",
        )
    except (OperationalError, InterfaceError) as error:
        log.warning(
            "an unread payload was not reported",
            integration=integration,
            endpoint=endpoint,
            reason=str(error),
        )


def end_unread(integration: str, endpoint: str) -> None:
    """End the alert of `note_unread`: the integration has another mapping."""
    over = Alert(key=_key(endpoint, "unread"), status="resolved", title="Payloads can be read")
    receive(Parsed((over,)), Delivery(integration, endpoint, "", b""))


def _key(endpoint: str, what: str) -> str:
    return f"dossier:{endpoint}:{what}"


def _is_known(integration: str) -> bool:
    """Whether alerts of it came before. Whoever sets a new sender up looks at its page, and nobody is to be called."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM alert WHERE integration = %s)", (integration,))
        return bool(cursor.fetchone()[0])


def warn(integration: str, endpoint: str, title: str, description: str, what: str = "refused") -> None:
    """Fire an alert of the integration itself: what it sends does not arrive, which its team has to know."""
    notes = Notes()
    alert = Alert(
        key=_key(endpoint, what),
        status="firing",
        title=notes.line("the title", title),
        severity="error" if what == "refused" else "warning",
        description=description,
        labels={"integration": integration, "endpoint": endpoint, "origin": "dossier"},
        expires_at=datetime.now(UTC) + WARNED_FOR,
        notes=tuple(notes.texts),
    )
    receive(Parsed((alert,)), Delivery(integration, endpoint, "", b""))


def noted(answer: HttpResponse, integration: str, endpoint: str) -> HttpResponse:
    """The answer; where it is a refusal it is remembered with the reason that a problem document gives."""
    if answer.status_code in SHOWN:
        note(integration, endpoint, answer.status_code, reason_of(answer.content))
    return answer


def reason_of(content: bytes) -> str:
    """Reason in an endpoint's answer, in whichever form."""
    text = content.decode(errors="replace")
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(answer, dict):
        return text
    return next(
        (str(answer[name]) for name in ("detail", "errors", "message", "error") if answer.get(name)), text
    )
