"""Contract of an outgoing webhook: its events, their signature, the meaning of an answer, the time to stop.

Of the kind that PagerDuty gives its webhooks (ordered for each incident, at least once, signed), with a stable id.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from incidents.domain.incident.remediation import REQUESTED
from incidents.domain.incident.state import Incident
from incidents.domain.values import rfc3339

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=10)
"""Between tries: doubles with each."""
LONGEST_RETRY_AFTER = timedelta(hours=1)
"""Longest wait that a receiver may ask for (Retry-After)."""
PATIENCE = 5
"""Failures in a row after which the endpoint, and not one event, is taken to be at fault."""
GIVE_UP = timedelta(hours=24)
"""An event that the endpoint takes not even after so long, while it takes others, is put aside."""
DISABLE_AFTER = timedelta(days=3)
"""An endpoint that took nothing for so long is no longer called."""
LARGEST_BODY = 512 * 2**10
"""Bytes; a larger event goes without its body, which the API has."""

FURTHEST = LONGEST_RETRY_AFTER + timedelta(minutes=1)
"""Latest time of a retry: a later one is of a clock that was set back since."""

Outcome = Literal["taken", "later", "refused", "gone"]
_ABOUT_THE_EVENT = frozenset({400, 413, 414, 415, 422, 431})


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Events that a webhook gets; an empty set lets everything through."""

    teams: frozenset[str] = frozenset()
    severities: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    name: str = ""
    """Of the webhook."""

    def is_for_another(self, type: str, body: Mapping[str, Any]) -> bool:
        """Whether the event asks another system to act. A webhook that names the type of requests carries them out, so
        it gets its own alone; one that gets everything is informed of all."""
        return type == REQUESTED and type in self.types and body["target"] != self.name

    def lets_through(self, type: str, before: Incident | None, after: Incident) -> bool:
        """An incident that leaves a team, or becomes less severe, also matches by its former value."""
        if self.types and type not in self.types:
            return False
        stood = [after] if before is None else [before, after]
        return (not self.teams or any(one.team in self.teams for one in stood)) and (
            not self.severities or any(one.severity in self.severities for one in stood)
        )


def sign(secrets: Sequence[str], timestamp: int, body: bytes) -> str:
    """The header `Dossier-Signature`: `t=SECONDS,v1=HEX`, a `v1` for each secret that is good now.

    HEX is HMAC-SHA256 with the secret over the timestamp, a full stop and the body.
    """
    signed = f"{timestamp}.".encode() + body
    made = [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in secrets]
    return ",".join([f"t={timestamp}", *(f"v1={one}" for one in made)])


def payload(
    id: str,
    type: str,
    actor: str,
    occurred_at: datetime,
    position: str,
    incident: Mapping[str, Any],
    event: Mapping[str, Any],
) -> bytes:
    """The body of a delivery; the same bytes however often the event is sent.

    `incident` is the incident as it stood after the event, in the API's form; `event` what the log has, or null where
    the body would be larger than LARGEST_BODY.
    """
    fields = {
        "id": id,
        "type": type,
        "actor": actor,
        "occurred_at": rfc3339(occurred_at),
        "position": position,
        "incident": incident,
        "event": event,
    }
    body = body_of(fields)
    return body if len(body) <= LARGEST_BODY else body_of({**fields, "event": None})


def body_of(body: Mapping[str, Any]) -> bytes:
    """The same bytes for the same body."""
    return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def outcome(status: int) -> Outcome:
    """Meaning of an answer. Only some refusals are about the event; the rest are about the endpoint, and pass."""
    if 200 <= status < 300:
        return "taken"
    if status == 410:
        return "gone"
    return "refused" if status in _ABOUT_THE_EVENT else "later"


def pause(attempts: int, wish: float | None = None) -> timedelta:
    """Wait after so many tries in vain; `wish` is what the receiver asked for, in seconds."""
    doubled: timedelta = FIRST_PAUSE * (1 << min(max(attempts - 1, 0), 20))
    return max(min(doubled, LONGEST_PAUSE), _requested_pause(wish))


def _requested_pause(wish: float | None) -> timedelta:
    return timedelta(seconds=min(max(wish or 0.0, 0.0), LONGEST_RETRY_AFTER.total_seconds()))


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Seconds of a `Retry-After` that gives seconds; None for none and for a date."""
    header = headers.get("retry-after", "").strip()
    return float(header) if header.isascii() and header.isdigit() and len(header) < 10 else None


@dataclass(frozen=True, slots=True)
class Health:
    """Health of an endpoint: failures in a row, their begin, and the time until which it is left alone."""

    failures: int = 0
    failing_since: datetime | None = None
    retry_at: datetime | None = None

    @property
    def probing(self) -> bool:
        """Then one event alone finds out whether it is back."""
        return self.failures >= PATIENCE

    def left_alone(self, now: datetime) -> bool:
        return self.retry_at is not None and now < self.retry_at <= now + FURTHEST


def after(health: Health, answered: bool, failures: int, now: datetime, wish: float | None = None) -> Health:
    """After a round: any answer that is about an event shows that the endpoint works."""
    if answered:
        return Health()
    if not failures:
        return health
    since = health.failing_since or now
    failing = Health(health.failures + failures, since)
    if not failing.probing:
        return failing
    # As long again as it has been failing: doubles with each try.
    own = min(max(now - since, FIRST_PAUSE), LONGEST_PAUSE)
    return replace(failing, retry_at=now + max(own, _requested_pause(wish)))


def exhausted(health: Health, now: datetime) -> bool:
    return health.failing_since is not None and now - health.failing_since >= DISABLE_AFTER


def given_up(since: datetime, last_taken: datetime | None, now: datetime) -> bool:
    """Whether an event that failed since then is put aside: only where the endpoint took others meanwhile."""
    return now - since >= GIVE_UP and last_taken is not None and last_taken > since
