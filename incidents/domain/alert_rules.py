"""Alert rules: which were useful, and what a change of one would have done to the recorded past. Pure.

A rule is what alerts of one integration name as theirs (`alertname`, else their group, else their title). An incident
counts for the rules of the alerts that opened it, each. What became of an incident is one of

- acted on: a person did more than acknowledge, unacknowledge or snooze: commented, handed over, changed something,
  asked a cluster for a repair, resolved it with a cause
- a false alarm: a person resolved it with the cause `none`
- ignored: somebody was called, and it ended by itself without any of that
- uncalled: it ended by itself, and no person was called
- open

and independent of that it flapped if an alert reopened it, or one of its alerts fired `flapping.FIRINGS` times while it
was open, or within `flapping.SPAN` over several short incidents, all of which flapped.

Changes are applied to recorded firings: one that lasted less than a longer `for` opens nothing, one that comes back
within `keep_firing_for` is the same firing. People are taken to answer as they did. What rules opened together with
others stays, whatever happens to one of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final, Literal, Protocol
from zoneinfo import ZoneInfo

from incidents.domain.incident.flapping import FIRINGS, SPAN
from incidents.domain.oncall.load import is_night, morning_after

WAITS: Final = (5, 10, 15, 30, 60)
"""Minutes that are tried as `for` and as `keep_firing_for`."""
LEAST_WASTED: Final = 3
"""Calls without action from which on a change is proposed."""
NEVER_USEFUL: Final = 5
"""Incidents without any action from which on a rule may be deleted."""
ACTS: Final = frozenset(
    f"incident.{name}"
    for name in (
        "alerts_moved",
        "assigned",
        "commented",
        "evidence_attached",
        "linked",
        "merged",
        "probe_requested",
        "proposal_accepted",
        "question_answered",
        "reassigned",
        "reassignment_accepted",
        "reassignment_rejected",
        "remediation_requested",
        "severity_set",
        "theory_checked",
        "title_set",
    )
)
"""Acts of people on an incident, beside resolving it."""
READ: Final = (
    "alert.reported",
    "incident.opened",
    "incident.alerts_joined",
    "incident.notified",
    "incident.acknowledged",
    "incident.resolved",
    "incident.reopened",
    *sorted(ACTS),
)
"""Types of the events that are read."""
_ENDS: Final = frozenset({"resolved", "expired", "settled"})
Outcome = Literal["acted", "false_alarm", "ignored", "uncalled", "open"]
Verdict = Literal["useful", "mixed", "ignored", "flapping", "quiet", "open"]
Kind = Literal["for", "keep_firing_for", "inhibit", "lower_urgency", "no_paging", "delete"]


# Past
# ----------------------------------------------------------------------------------------------------------
class LogEvent(Protocol):
    @property
    def stream(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def body(self) -> Mapping[str, Any]: ...

    @property
    def actor(self) -> str: ...

    @property
    def occurred_at(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class Note:
    """Retained part of an event."""

    stream: str
    type: str
    at: datetime
    actor: str
    body: Mapping[str, Any]


def note_of(event: LogEvent) -> Note | None:
    """The parts of an event that count here; None for one without any. Bodies of alerts are large."""
    body = event.body
    facts: dict[str, Any] = {}
    if event.type == "alert.reported":
        if body["change"] != "fired" and body["change"] not in _ENDS:
            return None
        named = body["labels"].get("alertname")
        facts = {
            "alert": body["alert"],
            "fired": body["change"] == "fired",
            "integration": body["integration"],
            "name": named or body["group"] or body["title"],
            "labelled": bool(named),
            "component": body.get("component"),
        }
    elif event.type == "incident.alerts_joined":
        facts = {"alerts": body["alerts"]}
    elif event.type == "incident.opened":
        facts = {"number": body["number"], "title": body["title"], "found": body["finding"] is not None}
    elif event.type == "incident.notified":
        if body["person"] is None or body["outcome"] != "sent" or body["notification"].startswith("over:"):
            return None
        facts = {"person": body["person"], "notification": body["notification"]}
    elif event.type == "incident.resolved":
        facts = {"confirmed_cause": body["confirmed_cause"]}
    return Note(event.stream, event.type, event.occurred_at, event.actor, facts)


@dataclass(frozen=True, slots=True, order=True)
class Rule:
    """`labelled`: its alerts carry the label `alertname`."""

    integration: str
    name: str
    labelled: bool = True


@dataclass(slots=True)
class Firing:
    """Of one alert; no end: it fires on."""

    start: datetime
    end: datetime | None = None

    def lasts(self, span: timedelta) -> bool:
        return self.end is None or self.end - self.start >= span


@dataclass(slots=True)
class RuleIncident:
    """`rules` are those of the alerts that opened it, `alerts` all that joined it."""

    stream: str
    number: int
    title: str
    opened_at: datetime
    rules: frozenset[Rule] = frozenset()
    alerts: list[str] = field(default_factory=list)
    calls: list[tuple[str, datetime]] = field(default_factory=list)
    acknowledged: bool = False
    acted: bool = False
    cause: str | None = None
    resolved_at: datetime | None = None
    reopened: int = 0
    flapped: bool = False

    @property
    def outcome(self) -> Outcome:
        if self.cause == "none":
            return "false_alarm"
        if self.acted:
            return "acted"
        if self.resolved_at is None:
            return "open"
        return "ignored" if self.calls else "uncalled"

    @property
    def is_wasted(self) -> bool:
        """Whether its calls led to nothing."""
        return self.outcome in ("ignored", "false_alarm")


@dataclass(slots=True)
class Past:
    """Firings of each alert in order, the rule of each and its component, and the incidents that alerts opened, in
    order."""

    firings: dict[str, list[Firing]] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)
    components: dict[str, str] = field(default_factory=dict)
    incidents: list[RuleIncident] = field(default_factory=list)

    def of(self, rule: Rule) -> list[RuleIncident]:
        return [one for one in self.incidents if rule in one.rules]

    def within(self, incident: RuleIncident, rule: Rule) -> list[Firing]:
        """The firings of a rule that belong to an incident."""
        return [
            firing
            for alert in incident.alerts
            if self.rules.get(alert) == rule
            for firing in self.firings.get(alert, ())
            if (firing.end is None or firing.end > incident.opened_at)
            and (incident.resolved_at is None or firing.start <= incident.resolved_at)
        ]


def past_of(notes: Iterable[Note]) -> Past:
    """Of events in order."""
    past, known, seen = Past(), dict[str, RuleIncident](), set[tuple[str, str]]()
    for note in notes:
        if note.type == "alert.reported":
            _alert(past, note)
        elif note.type == "incident.opened":
            if not note.body["found"]:
                known[note.stream] = RuleIncident(
                    note.stream, note.body["number"], note.body["title"], note.at
                )
        elif (incident := known.get(note.stream)) is not None:
            _worked(past, incident, note, seen)
    past.incidents = [one for one in known.values() if one.rules]
    for one in past.incidents:
        one.flapped = one.reopened > 0 or _flapped(past, one)
    return past


def _alert(past: Past, note: Note) -> None:
    alert, firings = note.body["alert"], past.firings.setdefault(note.body["alert"], [])
    if note.body["fired"]:
        past.rules[alert] = Rule(note.body["integration"], note.body["name"], note.body["labelled"])
        if note.body["component"]:
            past.components[alert] = note.body["component"]
        firings.append(Firing(note.at))
    elif firings and firings[-1].end is None:
        firings[-1].end = note.at


def _worked(past: Past, incident: RuleIncident, note: Note, seen: set[tuple[str, str]]) -> None:
    person = note.actor.startswith("user:")
    match note.type:
        case "incident.alerts_joined":
            if not incident.rules:
                incident.rules = frozenset(
                    past.rules[alert] for alert in note.body["alerts"] if alert in past.rules
                )
            incident.alerts += [alert for alert in note.body["alerts"] if alert not in incident.alerts]
        case "incident.notified":
            key = (note.stream, note.body["notification"])
            if key not in seen:  # by a second contact method it is the same call
                seen.add(key)
                incident.calls.append((note.body["person"], note.at))
        case "incident.acknowledged":
            incident.acknowledged |= person
        case "incident.resolved":
            incident.resolved_at, incident.cause = note.at, note.body["confirmed_cause"]
            incident.acted |= person and incident.cause != "none"
        case "incident.reopened":
            incident.resolved_at, incident.cause = None, None
            incident.reopened += not person
            incident.acted |= person
        case _:
            incident.acted |= person


def _flapped(past: Past, incident: RuleIncident) -> bool:
    """Whether an alert of it fired `FIRINGS` times while it was open, or within `SPAN` over several."""
    for alert in incident.alerts:
        starts = [one.start for one in past.firings.get(alert, ())]
        first = bisect_left(starts, incident.opened_at - timedelta(minutes=1))
        last = len(starts) if incident.resolved_at is None else bisect_left(starts, incident.resolved_at)
        if last - first >= FIRINGS:
            return True
        runs = range(max(0, first - FIRINGS + 1), min(last, len(starts) - FIRINGS + 1))
        if any(starts[begin + FIRINGS - 1] - starts[begin] <= SPAN for begin in runs):
            return True
    return False


# Use
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RuleUse:
    """A rule over a period: firings that began and incidents that opened in it. `wasted` are calls of incidents that
    were ignored or a false alarm."""

    rule: Rule
    firings: int
    alerts: int
    incidents: int
    calls: int
    acknowledged: int
    acted: int
    ignored: int
    false_alarms: int
    uncalled: int
    open: int
    flapped: int
    wasted: int

    @property
    def verdict(self) -> Verdict:
        """In one word."""
        judged = self.acted + self.ignored + self.false_alarms
        if self.flapped and self.flapped * 2 >= self.incidents:
            return "flapping"
        if not judged:
            return "open" if self.open else "quiet"
        if self.acted * 2 >= judged:
            return "useful"
        return "mixed" if self.acted else "ignored"


def uses(past: Past, start: datetime, end: datetime) -> list[RuleUse]:
    """Every rule with a firing or an incident from `start` to `end`, those with most wasted calls first."""
    firings: dict[Rule, list[int]] = {}
    for alert, rule in past.rules.items():
        count = sum(start <= one.start < end for one in past.firings[alert])
        if count:
            firings.setdefault(rule, []).append(count)
    incidents: dict[Rule, list[RuleIncident]] = {}
    for one in past.incidents:
        if start <= one.opened_at < end:
            for rule in one.rules:
                incidents.setdefault(rule, []).append(one)
    found = [_use(rule, firings.get(rule, []), incidents.get(rule, [])) for rule in {*firings, *incidents}]
    return sorted(found, key=lambda one: (-one.wasted, -one.calls, -one.firings, one.rule))


def _use(rule: Rule, firings: Sequence[int], incidents: Sequence[RuleIncident]) -> RuleUse:
    outcomes = [one.outcome for one in incidents]
    return RuleUse(
        rule=rule,
        firings=sum(firings),
        alerts=len(firings),
        incidents=len(incidents),
        calls=sum(len(one.calls) for one in incidents),
        acknowledged=sum(one.acknowledged for one in incidents),
        acted=outcomes.count("acted"),
        ignored=outcomes.count("ignored"),
        false_alarms=outcomes.count("false_alarm"),
        uncalled=outcomes.count("uncalled"),
        open=outcomes.count("open"),
        flapped=sum(one.flapped for one in incidents),
        wasted=sum(len(one.calls) for one in incidents if one.is_wasted),
    )


# Proposals
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of a change on the past. `later` incidents would have called somebody later, by `minutes_later`
    (median); `missed` are those of the `acted` that people acted on, for which nobody would have been called.
    `later` incidents would have called somebody later, by `minutes_later` (median); `missed` are those of the
    `acted` that people acted on, for which nobody would have been called."""

    calls_before: int
    calls_after: int
    later: int
    minutes_later: float | None
    missed: int
    acted: int

    @property
    def fewer(self) -> int:
        return self.calls_before - self.calls_after


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change of a rule; `minutes` of a wait, `by` the rule that inhibits it. `replayed`: its calls are of the replay
    of configurations."""

    kind: Kind
    minutes: int | None
    effect: Effect
    replayed: bool = False
    by: Rule | None = None


@dataclass(frozen=True, slots=True)
class Proposals:
    """`best` is None where no change saves calls without missing what people acted on."""

    rule: Rule
    best: Proposal | None
    others: tuple[Proposal, ...]


def needs_proposal(use: RuleUse) -> bool:
    return use.wasted >= LEAST_WASTED and use.verdict != "useful"


def proposals(
    past: Past, use: RuleUse, zones: Mapping[str, ZoneInfo], replayed: tuple[int, int] | None = None
) -> Proposals:
    """Changes of a rule over the whole of `past`, of which `use` is the summary. `replayed` are the calls before and
    after where nothing of the rule pages, by the replay of configurations; None: as recorded."""
    rule, usual = use.rule, ZoneInfo("UTC")
    incidents = past.of(rule)
    waits = [Proposal("for", one, with_wait(past, rule, timedelta(minutes=one))) for one in WAITS]
    keeps = [
        Proposal("keep_firing_for", one, with_longer_firing(past, rule, timedelta(minutes=one)))
        for one in WAITS
    ]
    lower = Proposal("lower_urgency", None, with_lower_urgency(incidents, rule, zones, usual))
    silent: Kind = (
        "delete" if use.incidents >= NEVER_USEFUL and not use.acted and not use.acknowledged else "no_paging"
    )
    unpaged = Proposal(silent, None, without_paging(incidents, rule, replayed), replayed is not None)
    best_wait = _smallest(waits, use.wasted / 2)
    best_keep = _smallest(keeps, use.calls * 0.3)
    never = unpaged if not use.acted and unpaged.effect.fewer > 0 else None
    at_night = lower if lower.effect.later or lower.effect.fewer > 0 else None
    best = best_wait or best_keep or never or at_night
    shown = [best_wait or _most(waits), best_keep or _most(keeps), lower, unpaged]
    others = tuple(one for one in shown if one is not best and (one.effect.fewer > 0 or one.effect.later))
    return Proposals(rule, best, others)


def _smallest(tried: Sequence[Proposal], least: float) -> Proposal | None:
    """The shortest that saves so many calls and misses nothing."""
    fit = (one for one in tried if one.effect.fewer >= max(1, least) and not one.effect.missed)
    return next(fit, None)


def _most(tried: Sequence[Proposal]) -> Proposal:
    """The shortest of those that save most."""
    return max(tried, key=lambda one: (one.effect.fewer, -(one.minutes or 0)))


def with_wait(past: Past, rule: Rule, wait: timedelta) -> Effect:
    """With that much added to `for`."""
    spared: list[RuleIncident] = []
    delays: list[float] = []
    incidents = past.of(rule)
    for one in incidents:
        if one.rules != {rule}:
            continue
        starts = [firing.start + wait for firing in past.within(one, rule) if firing.lasts(wait)]
        if not starts:
            spared.append(one)
        elif one.calls:
            delays.append(max(0.0, (min(starts) - one.opened_at).total_seconds() / 60))
    return _effect(incidents, spared, spared, delays)


def with_longer_firing(past: Past, rule: Rule, span: timedelta) -> Effect:
    """With `keep_firing_for`: an incident whose alert had been over for less joins the incident before."""
    incidents = past.of(rule)
    joined: list[RuleIncident] = []
    uncalled_for: list[RuleIncident] = []
    called: dict[str, bool] = {}
    for one in incidents:
        before = _before(past, one, rule, span, incidents) if one.rules == {rule} else None
        if before is None:
            called[one.stream] = bool(one.calls)
            continue
        joined.append(one)
        called[one.stream] = called.get(before.stream, bool(before.calls))
        if not called[one.stream]:
            uncalled_for.append(one)
    return _effect(incidents, joined, uncalled_for, ())


def _before(
    past: Past, incident: RuleIncident, rule: Rule, span: timedelta, incidents: Sequence[RuleIncident]
) -> RuleIncident | None:
    """The latest incident before that still would have fired, for each alert that this one began with."""
    found = None
    for alert in incident.alerts:
        if past.rules.get(alert) != rule:
            continue
        earlier = [
            firing.end
            for firing in past.firings[alert]
            if firing.end is not None
            and firing.end <= incident.opened_at
            and incident.opened_at - firing.end <= span
        ]
        if not earlier:
            return None
        same = [one for one in incidents if one.opened_at < incident.opened_at and alert in one.alerts]
        if not same:
            return None
        found = same[-1]
    return found


def with_inhibition(past: Past, rule: Rule, by: Rule) -> Effect:
    """Effect of suppressing its alerts while one of `by` fires on the same component."""
    incidents, covered = past.of(rule), _covered(past, rule, by)
    spared = [
        one
        for one in incidents
        if one.rules == {rule} and all(id(firing) in covered for firing in past.within(one, rule))
    ]
    return _effect(incidents, spared, spared, ())


def _covered(past: Past, rule: Rule, by: Rule) -> set[int]:
    """Identities of the firings of a rule that began while one of `by` on the same component fired."""
    above: dict[str, list[tuple[list[datetime], list[Firing]]]] = {}
    for alert, component in past.components.items():
        if past.rules[alert] == by:
            firings = past.firings[alert]
            above.setdefault(component, []).append(([one.start for one in firings], firings))
    return {
        id(firing)
        for alert, component in past.components.items()
        if past.rules[alert] == rule and component in above
        for firing in past.firings[alert]
        if any(_fires(starts, firings, firing.start) for starts, firings in above[component])
    }


def _fires(starts: Sequence[datetime], firings: Sequence[Firing], at: datetime) -> bool:
    """Whether one of the firings of an alert, in order, lasts at a moment."""
    place = bisect_right(starts, at)
    return place > 0 and ((end := firings[place - 1].end) is None or at < end)


def with_lower_urgency(
    incidents: Sequence[RuleIncident], rule: Rule, zones: Mapping[str, ZoneInfo], usual: ZoneInfo
) -> Effect:
    """Effect where calls at night wait for the morning of the person; none is sent for what is over by then."""
    before = after = later = missed = 0
    delays: list[float] = []
    for one in incidents:
        moments = [_unhurried(at, zones.get(person, usual)) for person, at in one.calls]
        before += len(moments)
        if one.rules != {rule}:
            after += len(moments)
            continue
        sent = [at for at in moments if one.resolved_at is None or at < one.resolved_at]
        after += len(sent)
        missed += bool(moments) and not sent and one.outcome == "acted"
        if sent and (delay := min(sent) - min(at for _, at in one.calls)) > timedelta(0):
            later += 1
            delays.append(delay.total_seconds() / 60)
    acted = sum(one.outcome == "acted" for one in incidents)
    return Effect(before, after, later, median(delays) if delays else None, missed, acted)


def _unhurried(at: datetime, zone: ZoneInfo) -> datetime:
    return morning_after(at, zone) if is_night(at, zone) else at


def without_paging(incidents: Sequence[RuleIncident], rule: Rule, replayed: tuple[int, int] | None) -> Effect:
    """Effect where its incidents call nobody."""
    alone = [one for one in incidents if one.rules == {rule}]
    found = _effect(incidents, alone, alone, ())
    if replayed is None:
        return found
    return Effect(*replayed, found.later, found.minutes_later, found.missed, found.acted)


def _effect(
    incidents: Sequence[RuleIncident],
    spared: Sequence[RuleIncident],
    uncalled_for: Sequence[RuleIncident],
    delays: Sequence[float],
) -> Effect:
    before = sum(len(one.calls) for one in incidents)
    late = [delay for delay in delays if delay > 0]
    return Effect(
        before,
        before - sum(len(one.calls) for one in spared),
        len(late),
        median(late) if late else None,
        sum(one.outcome == "acted" for one in uncalled_for),
        sum(one.outcome == "acted" for one in incidents),
    )


# Fewer firings
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Quieter:
    """A change by which `fires` are left of the `fired` firings of a rule."""

    proposal: Proposal
    fired: int
    fires: int


def quieter(past: Past, rule: Rule) -> Quieter | None:
    """The mildest change that spares half of the firings of a rule: the shortest `for`, else the shortest
    `keep_firing_for`, else inhibition by another rule, none of which misses what people acted on; else no paging for
    one on which nobody ever acted."""
    of_rule = [past.firings[alert] for alert, one in past.rules.items() if one == rule]
    fired = sum(map(len, of_rule))
    for minutes in WAITS:
        wait = timedelta(minutes=minutes)
        fires = sum(one.lasts(wait) for firings in of_rule for one in firings)
        if fires * 2 <= fired and not (effect := with_wait(past, rule, wait)).missed:
            return Quieter(Proposal("for", minutes, effect), fired, fires)
    for minutes in WAITS:
        span = timedelta(minutes=minutes)
        fires = sum(_spells(firings, span) for firings in of_rule)
        if fires * 2 <= fired and not (effect := with_longer_firing(past, rule, span)).missed:
            return Quieter(Proposal("keep_firing_for", minutes, effect), fired, fires)
    own = {component for alert, component in past.components.items() if past.rules[alert] == rule}
    beside = {past.rules[alert] for alert, component in past.components.items() if component in own} - {rule}
    covering = [(len(_covered(past, rule, other)), other) for other in sorted(beside)]
    count, other = max(covering, key=lambda one: one[0], default=(0, rule))
    if count * 2 >= max(fired, 1) and not (effect := with_inhibition(past, rule, other)).missed:
        return Quieter(Proposal("inhibit", None, effect, by=other), fired, fired - count)
    incidents = past.of(rule)
    unpaged = without_paging(incidents, rule, None)
    if unpaged.fewer > 0 and not any(one.outcome == "acted" for one in incidents):
        return Quieter(Proposal("no_paging", None, unpaged), fired, fired)
    return None


def _spells(firings: Sequence[Firing], span: timedelta) -> int:
    """Firings that are left where one that comes back within `span` is the one before."""
    return sum(
        before is None or before.end is None or one.start - before.end > span
        for before, one in zip((None, *firings), firings, strict=False)
    )
