"""What happens to a message: sent now, held back, stopped, tried again, or given up.

A call (a person is to be told of an incident) becomes steps, one for each method of the person. The first
message about a incident to a person is never held by a throttle; quiet hours hold what is neither urgent nor
critical, because the person asked for that; what follows a message within a few seconds waits to be told with
others in one. Whatever is held has a time at which it goes, so nothing is held for ever. Every call ends:
sent, stopped because somebody answered the incident, or given up with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

from incidents.domain.incident.refusals import at_second
from incidents.domain.incident.state import Incident
from incidents.domain.notifications.responses import Reply
from incidents.domain.notifications.rules import Method, Person
from incidents.domain.values import Severity

PAUSES: Final = (5, 15, 30, 60, 120, 300, 300, 600, 600)
"""Seconds before each further attempt, give or take a quarter: 34 minutes in all."""
MOST_ATTEMPTS: Final = len(PAUSES) + 1
LONGEST_PAUSE_UNREADABLE: Final = 60
"""Seconds between attempts at what cannot be decrypted: no receiver is asked, and the right key may come any time."""
FALL_AFTER: Final = 3
"""Failed attempts after which the next method is not waited for any longer."""
QUIET: Final = "quiet hours until"
"""How the reason begins for which quiet hours hold something."""

DeliveryState = Literal["waiting", "sent", "stopped", "given_up"]


@dataclass(frozen=True, slots=True)
class Ticket:
    """The part of an incident that decides whether somebody is still to be told."""

    state: str
    severity: Severity
    team: str
    team_since: datetime
    acknowledged_by: str | None = None
    resolved_by: str | None = None
    snoozed_by: str | None = None
    silence: str | None = None
    merged_number: int | None = None


def ticket_of(incident: Incident) -> Ticket:
    return Ticket(**{name: getattr(incident, name) for name in Ticket.__slots__})


def answered(ticket: Ticket, made_at: datetime, team: str = "") -> str | None:
    """Why nobody has to be told any more; None while somebody has to. `team` had the incident when the call was made.

    Nobody is called for what is acknowledged, so an acknowledgement counts whatever the clocks say: two that meet are
    of two processes. A hand-over from before the call was known to whoever called.
    """
    if ticket.merged_number is not None:
        return f"merged into #{ticket.merged_number}"
    if ticket.state == "resolved":
        return f"resolved by {ticket.resolved_by}"
    if ticket.state == "snoozed":
        return "alerts silenced" if ticket.silence else f"snoozed by {ticket.snoozed_by}"
    if ticket.state == "acknowledged":
        return f"acknowledged by {ticket.acknowledged_by}"
    if ticket.team_since > made_at:
        return f"handed over to {ticket.team}"
    if team not in ("", ticket.team):  # a hand-over that was taken back: as if it had never left
        return f"back with {ticket.team}"
    return None


@dataclass(frozen=True, slots=True)
class Line:
    """What went through one method lately: when each message was sent, within the method's span, oldest first."""

    sent: tuple[datetime, ...] = ()
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A step whose time has come. `first`: of this incident this person was told nothing yet. `team`: see
    `answered`.
    """

    method: Method
    at: datetime
    made_at: datetime
    urgent: bool
    first: bool
    attempts: int = 0
    team: str = ""
    over: bool = False
    """It says that the incident is over."""


@dataclass(frozen=True, slots=True)
class Send:
    pass


@dataclass(frozen=True, slots=True)
class Stop:
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """`bundling` waits a few seconds for others; that is not told on the incident."""

    until: datetime
    why: str
    bundling: bool = False


def judge(due: Due, ticket: Ticket, person: Person | None, line: Line, now: datetime) -> Send | Stop | Wait:
    """What to do with a step now. `person` is None for an address without one."""
    if due.over:
        if ticket.state != "resolved":
            return Stop("reopened")
    elif (why := answered(ticket, due.made_at, due.team)) is not None:
        return Stop(why)
    if due.attempts:  # it was let through before
        return Send()
    critical = ticket.severity == "critical" and not due.over
    quiet = None if person is None or due.urgent or critical else person.quiet
    if quiet is not None and (end := quiet.until(now)) is not None:
        return Wait(end, f"{QUIET} {end.astimezone(ZoneInfo(quiet.zone)):%H:%M} ({quiet.zone})")
    if (free := _throttled(due, line, now)) is not None:
        minutes = due.method.span.total_seconds() / 60
        return Wait(free, f"{len(line.sent)} messages in {minutes:g} min; next at {at_second(free)}")
    bundle = timedelta(0) if person is None else person.bundle
    # Two processes may be a little apart; what was sent later still was sent before the clock was set back.
    if line.last is not None and now < (until := line.last + bundle) <= now + 2 * bundle:
        return Wait(until, f"bundled until {at_second(until)}", bundling=True)
    return Send()


def _throttled(due: Due, line: Line, now: datetime) -> datetime | None:
    """Until when the throttle holds it: never a first page, never longer than one span."""
    method = due.method
    if due.first or method.most is None or len(line.sent) < method.most:
        return None
    until = min(line.sent[-method.most] + method.span, due.at + method.span)
    return until if until > now else None


# After an answer
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Done:
    pass


@dataclass(frozen=True, slots=True)
class Retry:
    at: datetime
    why: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    why: str


def after(
    reply: Reply, attempt: int, now: datetime, jitter: float, *, over: bool = False
) -> Done | Retry | GiveUp:
    """What follows from the answer to attempt number `attempt` (from 1). `jitter` is drawn from [0, 1).

    What cannot be decrypted is tried for as long as somebody has to be told (`judge`). `over`: the message says that
    the incident is over, which ends after the usual attempts.
    """
    if reply.kind == "taken":
        return Done()
    if reply.kind == "refused":
        return GiveUp(reply.why)
    endless = reply.kind == "unreadable" and not over
    if attempt >= MOST_ATTEMPTS and not endless:
        return GiveUp(f"{reply.why} ({attempt} attempts)")
    seconds = PAUSES[min(attempt, len(PAUSES)) - 1]
    if endless:
        seconds = min(seconds, LONGEST_PAUSE_UNREADABLE)
    pause = timedelta(seconds=seconds * (0.75 + 0.5 * jitter))
    return Retry(now + max(pause, reply.retry_after or timedelta(0)), reply.why)


@dataclass(frozen=True, slots=True)
class Tried:
    """How one step of a call stands."""

    name: str
    standing: DeliveryState
    attempts: int = 0


def is_stuck(steps: Sequence[Tried]) -> bool:
    """Whether nothing was sent, and all that was tried fails: then the next method is due at once."""
    tried = [step for step in steps if step.standing == "given_up" or step.attempts]
    failing = all(step.standing == "given_up" or step.attempts >= FALL_AFTER for step in tried)
    return bool(tried) and failing and not any(step.standing in ("sent", "stopped") for step in steps)


def outcome(steps: Sequence[Tried]) -> Literal["sent", "stopped", "given_up"] | None:
    """How a call ended; None while a step waits."""
    standings = {step.standing for step in steps}
    if "waiting" in standings:
        return None
    return "sent" if "sent" in standings else "stopped" if "stopped" in standings else "given_up"
