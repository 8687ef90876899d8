"""Delivery of a notification: the steps planned by a person's rules, their states, the meaning of responses. Pure.

The escalation policy decides who is called; the rules of a person only decide how. An incident that no rule matches is
sent as if there were no rules, rather than not at all.

A call becomes steps, one for each contact method. A throttle never delays the first message about an incident to a
person; quiet hours delay what is neither urgent nor critical; what follows a message within a few seconds is bundled.
Whatever is delayed has a time at which it goes. Every call ends: sent, stopped by a response to the incident, or given
up with a reason.

Responses. SMTP: RFC 5321, 4.2.1 (4yz is temporary, 5yz permanent). HTTP: RFC 9110 (408, 421, 425, 429 and 5xx are
temporary; `Retry-After` says until when), other 4xx and redirects are permanent. No response is temporary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from incidents.domain.incident.state import Incident, at_second
from incidents.domain.values import (
    SEVERITIES,
    InvalidValueError,
    Severity,
    check_line,
    check_list,
    check_object,
    check_severity,
    check_whole,
)

# Delivery
# ----------------------------------------------------------------------------------------------------------
# Rules
# ----------------------------------------------------------------------------------------------------------
Kind = Literal["email", "webhook", "teams", "apprise", "push", "sms", "voice"]
Source = Literal["method", "account", "direct"]
TITLES: Final[Mapping[Kind, str]] = {
    "email": "e-mail",
    "webhook": "webhook",
    "teams": "Microsoft Teams",
    "apprise": "other service (Apprise)",
    "push": "push on a device",
    "sms": "SMS",
    "voice": "phone call",
}
"""Kinds of contact methods, with their names in the console."""
KINDS: Final = tuple(TITLES)

RULES_LIMIT: Final = 20
LONGEST_DELAY: Final = 24 * 3600
"""Seconds."""
LONGEST_BUNDLE: Final = 300
DEFAULT_BUNDLE: Final = 15
ACCOUNT: Final = "account"
"""Name in rules of the e-mail address of the account."""


@dataclass(frozen=True, slots=True)
class Method:
    """A way to reach somebody. `most` messages within `span`; None: as many as there are."""

    name: str
    kind: Kind
    source: Source = "method"
    most: int | None = None
    span: timedelta = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Rule:
    """For incidents of these severities (none: all) and this urgency (None: both): `method`, `delay` after the call."""

    method: str
    delay: timedelta = timedelta(0)
    severities: tuple[Severity, ...] = ()
    urgent: bool | None = None

    def fits(self, severity: Severity, urgent: bool) -> bool:
        return (not self.severities or severity in self.severities) and self.urgent in (None, urgent)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `start` to `end` by the clocks of `zone`, every day; over midnight where `end` is not after `start`."""

    zone: str
    start: time
    end: time

    def until(self, now: datetime) -> datetime | None:
        """End of the quiet hours that hold at `now`; None where they do not hold."""
        zone = ZoneInfo(self.zone)
        today = now.astimezone(zone).date()
        for day in (today - timedelta(days=1), today):
            over = day if self.end > self.start else day + timedelta(days=1)
            if _at(day, self.start, zone) <= now < (end := _at(over, self.end, zone)):
                return end
        return None


def _at(day: date, clock: time, zone: ZoneInfo) -> datetime:
    """Instant of that clock time; one that the clocks skip is as far after the change as it says (PEP 495)."""
    return datetime.combine(day, clock, zone).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Person:
    """Person with their contact methods, in order; the address of the account comes last. `methods` in their order;
    the address of the account comes last."""

    name: str
    methods: tuple[Method, ...] = ()
    rules: tuple[Rule, ...] = ()
    quiet: QuietHours | None = None
    bundle: timedelta = timedelta(seconds=DEFAULT_BUNDLE)


@dataclass(frozen=True, slots=True)
class Step:
    method: Method
    at: datetime


def steps(person: Person, severity: Severity, urgent: bool, made_at: datetime) -> tuple[Step, ...]:
    """Steps of a call: the earliest first; none where there is no way to reach them.

    Without a rule that fits: all their own methods at once, or the address of their account.
    """
    known = {method.name: method for method in person.methods}
    fitting = [rule for rule in person.rules if rule.fits(severity, urgent) and rule.method in known]
    ruled = [Step(known[rule.method], made_at + rule.delay) for rule in fitting]
    if not ruled:
        own = [method for method in person.methods if method.source == "method"]
        ruled = [Step(method, made_at) for method in own or person.methods]
    return tuple(sorted(dict.fromkeys(ruled), key=lambda step: step.at))


def another_way(person: Person, used: Sequence[str]) -> Method | None:
    """A method that was not tried, when all that were planned have failed."""
    return next((method for method in person.methods if method.name not in used), None)


# What people write
# ----------------------------------------------------------------------------------------------------------
_RULE_FIELDS: Final = ("method", "delay", "severities", "urgent")
_QUIET_FIELDS: Final = ("zone", "start", "end")


def rules_from(value: object, methods: Sequence[str]) -> tuple[Rule, ...]:
    """Rules as JSON has them, held against the names of the methods there are. Raises InvalidValueError."""
    given = check_list("rules", value, RULES_LIMIT)
    return tuple(_rule(f"rules[{place}]", each, methods) for place, each in enumerate(given))


def _rule(field: str, value: object, methods: Sequence[str]) -> Rule:
    given = check_object(field, value, _RULE_FIELDS)
    method = check_line(f"{field}.method", given.get("method"))
    if method not in methods:
        raise InvalidValueError(f"{field}.method", f"no contact method {method}; use {_listed(methods)}")
    severities = given.get("severities") or []
    if not isinstance(severities, list) or len(severities) > len(SEVERITIES):
        raise InvalidValueError(f"{field}.severities", f"must be a list of {', '.join(SEVERITIES)}")
    urgent = given.get("urgent")
    if urgent is not None and not isinstance(urgent, bool):
        raise InvalidValueError(f"{field}.urgent", "must be true, false or null")
    chosen = {check_severity(f"{field}.severities", each) for each in severities}
    return Rule(
        method,
        timedelta(seconds=check_whole(f"{field}.delay", given.get("delay", 0), LONGEST_DELAY)),
        tuple(severity for severity in SEVERITIES if severity in chosen),
        urgent,
    )


def rules_as_json(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    return [
        {
            "method": rule.method,
            "delay": int(rule.delay.total_seconds()),
            "severities": list(rule.severities),
            "urgent": rule.urgent,
        }
        for rule in rules
    ]


def quiet_from(value: object) -> QuietHours | None:
    """Quiet hours as JSON has them. Raises InvalidValueError."""
    if value is None:
        return None
    given = check_object("quiet_hours", value, _QUIET_FIELDS)
    zone = check_line("quiet_hours.zone", given.get("zone"), 64)
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise InvalidValueError(
            "quiet_hours.zone", "must be an IANA time zone such as Europe/Berlin"
        ) from None
    start, end = _clock("start", given.get("start")), _clock("end", given.get("end"))
    if start == end:
        raise InvalidValueError(
            "quiet_hours.end", "must differ from the start: quiet hours cannot cover the whole day"
        )
    return QuietHours(zone, start, end)


def quiet_as_json(quiet: QuietHours | None) -> dict[str, str] | None:
    return (
        None
        if quiet is None
        else {"zone": quiet.zone, "start": f"{quiet.start:%H:%M}", "end": f"{quiet.end:%H:%M}"}
    )


def _clock(name: str, value: object) -> time:
    try:
        moment = datetime.strptime(check_line(f"quiet_hours.{name}", value, 5), "%H:%M")  # noqa: DTZ007  a clock time
    except ValueError:
        raise InvalidValueError(f"quiet_hours.{name}", "must be a time of day such as 22:00") from None
    return moment.time()


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none yet"


# State
# ----------------------------------------------------------------------------------------------------------
PAUSES: Final = (5, 15, 30, 60, 120, 300, 300, 600, 600)
"""Seconds before each further attempt, give or take a quarter: 34 minutes in all."""
MOST_ATTEMPTS: Final = len(PAUSES) + 1
LONGEST_PAUSE_UNREADABLE: Final = 60
"""Seconds between attempts at what cannot be decrypted: no receiver is asked, and the right key may come any time."""
FALL_AFTER: Final = 3
"""Failed attempts after which the next method is not waited for any longer."""
QUIET: Final = "quiet hours until"
"""Beginning of the reason for which quiet hours delay a notification."""

DeliveryState = Literal["waiting", "sent", "stopped", "given_up"]


@dataclass(frozen=True, slots=True)
class NotifiedIncident:
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


def notified(incident: Incident) -> NotifiedIncident:
    return NotifiedIncident(**{name: getattr(incident, name) for name in NotifiedIncident.__slots__})


def answered(incident: NotifiedIncident, made_at: datetime, team: str = "") -> str | None:
    """Reason why nobody has to be notified any more; None while somebody has to. `team` had the incident when the
    call was made.

    Nobody is called for what is acknowledged, so an acknowledgement counts whatever the clocks say: two that meet are
    of two processes. A hand-over from before the call was known to whoever called.
    """
    if incident.merged_number is not None:
        return f"merged into #{incident.merged_number}"
    if incident.state == "resolved":
        return f"resolved by {incident.resolved_by}"
    if incident.state == "snoozed":
        return "alerts silenced" if incident.silence else f"snoozed by {incident.snoozed_by}"
    if incident.state == "acknowledged":
        return f"acknowledged by {incident.acknowledged_by}"
    if incident.team_since > made_at:
        return f"handed over to {incident.team}"
    if team not in ("", incident.team):  # a hand-over that was taken back: as if it had never left
        return f"back with {incident.team}"
    return None


@dataclass(frozen=True, slots=True)
class Line:
    """Recent messages of one method: the time of each, within the method's span, oldest first."""

    sent: tuple[datetime, ...] = ()
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A step whose time has come. `first`: this person has no message about this incident yet. `team`: see
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


def judge(
    due: Due, incident: NotifiedIncident, person: Person | None, line: Line, now: datetime
) -> Send | Stop | Wait:
    """Decision on a step now. `person` is None for an address without one."""
    if due.over:
        if incident.state != "resolved":
            return Stop("reopened")
    elif (why := answered(incident, due.made_at, due.team)) is not None:
        return Stop(why)
    if due.attempts:  # it was let through before
        return Send()
    critical = incident.severity == "critical" and not due.over
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
    """Consequence of the answer to attempt number `attempt` (from 1). `jitter` is drawn from [0, 1).

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
    """State of one step of a call."""

    name: str
    state: DeliveryState
    attempts: int = 0


def is_stuck(steps: Sequence[Tried]) -> bool:
    """Whether nothing was sent, and all that was tried fails: then the next method is due at once."""
    tried = [step for step in steps if step.state == "given_up" or step.attempts]
    failing = all(step.state == "given_up" or step.attempts >= FALL_AFTER for step in tried)
    return bool(tried) and failing and not any(step.state in ("sent", "stopped") for step in steps)


def outcome(steps: Sequence[Tried]) -> Literal["sent", "stopped", "given_up"] | None:
    """Outcome of a call; None while a step waits."""
    states = {step.state for step in steps}
    if "waiting" in states:
        return None
    return "sent" if "sent" in states else "stopped" if "stopped" in states else "given_up"


# Responses
# ----------------------------------------------------------------------------------------------------------
ReplyKind = Literal["taken", "passing", "refused", "unreadable"]
"""`unreadable`: not sent, because this installation cannot decrypt the address or secret; the right key restores it."""
WHY_LIMIT: Final = 300
LONGEST_WAIT: Final = timedelta(minutes=15)
"""Longest wait that a receiver may ask for: a page that waits longer is of no use."""
_PASSING: Final = frozenset({408, 421, 423, 425, 429})


@dataclass(frozen=True, slots=True)
class Reply:
    """`why` is what people read; `retry_after` what the receiver asked for; `is_gone`: its address has ended."""

    kind: ReplyKind
    why: str = ""
    retry_after: timedelta | None = None
    is_gone: bool = False


def smtp(code: int, text: str) -> Reply:
    """An answer of a mail server."""
    why = shortened(f"the mail server responded {code} {text}".strip())
    if 200 <= code < 400:
        return Reply("taken", why)
    return Reply("refused" if 500 <= code < 600 else "passing", why)


def http(status: int, headers: Mapping[str, str], text: str, now: datetime) -> Reply:
    """An answer of a web server; names of headers in lower case."""
    words = f"response {status}" + (f": {text}" if text.strip() else "")
    if 200 <= status < 300:
        return Reply("taken", f"response {status}")
    if status >= 500 or status in _PASSING:
        return Reply("passing", shortened(words), retry_after(headers.get("retry-after", ""), now))
    return Reply("refused", shortened(words))


def no_answer(why: str) -> Reply:
    """No name, no connection, no end in time."""
    return Reply("passing", shortened(why))


def refused(why: str) -> Reply:
    """Reply for a message that we will not or cannot send, however often."""
    return Reply("refused", shortened(why))


def unreadable(why: str) -> Reply:
    """Reply for a message that cannot be decrypted under the present key."""
    return Reply("unreadable", shortened(why))


def retry_after(text: str, now: datetime) -> timedelta | None:
    """Seconds, or a date (RFC 9110, 10.2.3); None for nonsense. At most `LONGEST_WAIT`."""
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max(moment - now, timedelta(0)), LONGEST_WAIT)


def shortened(text: str) -> str:
    """On one line and fit for an event: what foreign servers say holds anything."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * WHY_LIMIT]).split())
    return line if len(line) <= WHY_LIMIT else line[: WHY_LIMIT - 1] + "…"
