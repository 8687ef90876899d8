"""Changes by an alert that comes in: pure.

An alert that says nothing new is a repeat: it is counted and its time kept, and costs the log nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from ingest.integrations.normalized import Alert

Outcome = Literal[
    "fired", "acknowledged", "resolved", "expired", "settled", "severity", "component", "repeated", "ignored"
]

FLAP_WINDOW = timedelta(hours=1)
"""Retention of earlier firings of an alert, the input of flap detection."""
MOST_REMEMBERED = 20
SETTLED = timedelta(minutes=5)
"""For how long an alert that is sent again is not taken for a new one after a person resolved its incident: Prometheus
looks at its rules once a minute, and sends what still fires as often. Not once its sender said that it is over, nor
where it says that it began later than what was resolved."""


LATE = timedelta(minutes=1)
"""By how much senders that stand in for each other may be apart: in a cluster, Alertmanagers wait 15 s for another."""


class Known(Struct, frozen=True, array_like=True):
    """State of an alert before another one of its key comes in."""

    status: str
    severity: str
    component: str | None
    starts_at: datetime | None
    expired: bool = False
    """It resolved because its sender fell silent, or a person said so, not because its sender did."""
    settled_until: datetime | None = None
    """A person said that it is over; until then its sender may not know it yet."""
    changed_at: datetime | None = None


class Decision(Struct, frozen=True):
    """`outcome` and, where it changes nothing, why. What is `ignored` leaves no trace but its payload and receipt."""

    outcome: Outcome
    why: str = ""

    @property
    def changes(self) -> bool:
        return self.outcome not in ("repeated", "ignored")


REPEATED = Decision("repeated")


def decide(known: Known | None, alert: Alert, now: datetime) -> Decision:
    """Changes by `alert`, which comes in at `now`, to the state of its key; None: the key never fired."""
    if known is None or known.status == "resolved":
        return _decide_at_rest(known, alert, now)
    if alert.status == "resolved":
        if _before(alert.starts_at, known.starts_at):
            return Decision("ignored", "it resolves an earlier firing; a later one goes on")
        return Decision("resolved")
    if alert.status == "acknowledged":
        return REPEATED if known.status == "acknowledged" else Decision("acknowledged")
    if alert.severity != known.severity:
        return Decision("severity")
    if alert.component != known.component:
        return Decision("component")
    return REPEATED


def _decide_at_rest(known: Known | None, alert: Alert, now: datetime) -> Decision:
    settled = known is not None and known.settled_until is not None and now < known.settled_until
    if alert.status == "resolved":
        if settled:  # its sender knows by now: what it tells after this is new
            return Decision("resolved")
        return _decide_end_unheard(known, alert)
    if alert.status == "acknowledged":
        return Decision("ignored", "it is not firing")
    if settled and known is not None and not _before(known.starts_at, alert.starts_at):
        return Decision("repeated", "a person resolved its incident a moment ago")
    # Of two senders that stand in for each other one may be late: this firing has been resolved since.
    if (
        known is not None
        and not known.expired
        and not _before(known.starts_at, alert.starts_at, unknown=True)
        and not _goes_on(known, alert, now)
    ):
        return Decision("ignored", "this firing has been resolved already")
    return Decision("fired")


def _decide_end_unheard(known: Known | None, alert: Alert) -> Decision:
    """The end of a firing that was not received is stored where its sender says when that began: the firing itself
    may still be on its way, and opens nothing then. Who says again what fires also starts again later; of others the
    start may be the time of the message, and a healthy thing would cost an event with each."""
    if known is None:
        return Decision("resolved") if alert.starts_at else Decision("ignored", "it was not firing")
    later = alert.resends and not known.expired and _before(known.starts_at, alert.starts_at)
    return Decision("resolved") if later else REPEATED


def _goes_on(known: Known, alert: Alert, now: datetime) -> bool:
    """Whether its end was none. Alertmanager ends what it did not hear of for a while, and a post that was under way
    for too long has ended when it comes; then the same firing is told again, and nothing else ever would be."""
    late = timedelta(0) <= now - (known.changed_at or now) <= LATE
    return alert.resends and not late


def _before(one: datetime | None, other: datetime | None, *, unknown: bool = False) -> bool:
    return unknown if one is None or other is None else one < other


def fired_recently(before: Iterable[datetime], now: datetime) -> list[datetime]:
    """The times at which it began to fire that are remembered, `now` the last of them."""
    return [*(at for at in before if now - at < FLAP_WINDOW), now][-MOST_REMEMBERED:]
