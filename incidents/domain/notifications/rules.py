"""How a person is reached: which of their methods, in which order, and when they want to sleep.

Who is called decides an escalation policy; the rules of a person only decide how. So an incident that no rule is for is
told as if there were no rules, rather than not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Literal, get_args
from zoneinfo import ZoneInfo

from incidents.domain.values import SEVERITIES, InvalidValueError, Severity, check_line, check_severity

Kind = Literal["email", "webhook", "apprise"]
Source = Literal["method", "account", "direct"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

RULES_LIMIT: Final = 20
LONGEST_DELAY: Final = 24 * 3600
"""Seconds."""
LONGEST_BUNDLE: Final = 300
DEFAULT_BUNDLE: Final = 15
ACCOUNT: Final = "account"
"""What rules call the e-mail address of the account."""


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
        """When the quiet ends that holds at `now`; None where it does not hold."""
        zone = ZoneInfo(self.zone)
        today = now.astimezone(zone).date()
        for day in (today - timedelta(days=1), today):
            over = day if self.end > self.start else day + timedelta(days=1)
            if _at(day, self.start, zone) <= now < (end := _at(over, self.end, zone)):
                return end
        return None


def _at(day: date, clock: time, zone: ZoneInfo) -> datetime:
    """That clock time as an instant; one that the clocks skip is as far after the change as it says (PEP 495)."""
    return datetime.combine(day, clock, zone).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Person:
    """What is known of how to reach somebody. `methods` in their order; the address of the account comes last."""

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
    """What is planned for a call: the earliest first; none where there is no way to reach them.

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
_RULE_FIELDS: Final = {"method", "delay", "severities", "urgent"}
_QUIET_FIELDS: Final = {"zone", "start", "end"}


def rules_from(told: object, methods: Sequence[str]) -> tuple[Rule, ...]:
    """Rules as JSON has them, held against the names of the methods there are. Raises InvalidValueError."""
    if not isinstance(told, list):
        raise InvalidValueError("rules", "must be a list")
    if len(told) > RULES_LIMIT:
        raise InvalidValueError("rules", f"must have at most {RULES_LIMIT} entries, has {len(told)}")
    return tuple(_rule(f"rules[{place}]", each, methods) for place, each in enumerate(told))


def _rule(field: str, told: object, methods: Sequence[str]) -> Rule:
    given = _object(field, told, _RULE_FIELDS)
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
        timedelta(seconds=whole(f"{field}.delay", given.get("delay", 0), LONGEST_DELAY)),
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


def quiet_from(told: object) -> QuietHours | None:
    """Quiet hours as JSON has them. Raises InvalidValueError."""
    if told is None:
        return None
    given = _object("quiet_hours", told, _QUIET_FIELDS)
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


def _clock(name: str, told: object) -> time:
    try:
        moment = datetime.strptime(check_line(f"quiet_hours.{name}", told, 5), "%H:%M")  # noqa: DTZ007  a clock time
    except ValueError:
        raise InvalidValueError(f"quiet_hours.{name}", "must be a time of day such as 22:00") from None
    return moment.time()


def whole(field: str, told: object, high: int, low: int = 0) -> int:
    """A whole number within bounds. Raises InvalidValueError."""
    if not isinstance(told, int) or isinstance(told, bool) or not low <= told <= high:
        raise InvalidValueError(field, f"must be a whole number from {low} to {high}")
    return told


def _object(field: str, told: object, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(told, Mapping):
        raise InvalidValueError(field, f"must be an object of {', '.join(sorted(known))}")
    if unknown := sorted(set(told) - known):
        raise InvalidValueError(f"{field}.{unknown[0]}"[:200], "is not a known field")
    return told


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none yet"
