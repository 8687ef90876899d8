"""The page of an incident as one typed object: `incident_page(number, as_of)`. The view renders it and adds the forms
of whoever reads.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from analyzers import queries as analyzers
from frontend import times
from frontend.evidence import (
    Alternative,
    Group,
    Strip,
    alternatives,
    cleared,
    counted,
    grouped,
    latest_of_each,
    slices,
    strip_of,
)
from frontend.times import instants_words
from incidents import queries
from incidents.commands import InvalidValueError
from incidents.domain.escalation.policy import Step, spoken
from incidents.domain.incident.alerts import is_on_several
from incidents.domain.incident.state import Failure, Overridden
from incidents.domain.incident.timeline import KINDS, kind_of
from incidents.domain.values import rfc3339
from incidents.escalation.queries import LATE, EscalationStatus, Next, escalation_status, escalation_status_at
from incidents.incident.view import Shared, failure_shown, moment
from incidents.notifications.queries import failed_calls, unreachable
from incidents.onsets.queries import Beginning
from incidents.queries import Entry, Incident, Opinion, View
from incidents.suppression.suppressor import overridden
from ingest.api.pagination import PageError, page_at, parse_start
from ingest.queries import Alert, Position

MOST_JOINS = 6
"""Reasons for joining that the page lists."""
MANY_ALERTS = 10
"""From this number of alerts on the page shows their common labels."""
MOST_SHARED = 8
CLEARED = "cleared"
ALERTS = 100
"""Alerts on one page of the list."""
FEW_ALERTS, ALERTS_AT_ONCE = 4, 3
"""So many are shown without a fold; of more, so many above it."""
MOST_RUNBOOKS = 2
RECENT = 5
"""Timeline entries above the fold."""
MOST_MOMENTS = 2_000
LONGEST = 140
"""Characters of a moment's sentence."""
KIND_WORDS = {
    "people": "People",
    "analyzers": "Analyzers",
    "alerts": "Alerts",
    "routing": "Routing",
    "notifications": "Notifications",
}


@dataclass(frozen=True, slots=True)
class IncidentPage:
    """Everything that the page of an incident shows to every reader, now or as of a log position, but for its
    `frontend.incident_details`.

    `suspects` are those of the latest run that blames the cause, its own first; `current` and `older` are groups of
    evidence; `evidence_version` changes with them. `moments` are the stops of the time slider, `moment_place` is the
    index of the one shown. `not_reached` maps a person to the reason. `shared`, `pending_resolutions` and `overridden`
    are empty for a past moment.
    """

    incident: Incident
    position_of_view: str
    as_of: Position | None
    failure: Failure
    suspects: Sequence[Mapping[str, Any]]
    assumptions: Sequence[Mapping[str, Any]]
    alternatives: Sequence[Alternative]
    current: Sequence[Group]
    older: Sequence[Group]
    evidence_version: str
    opinions: Sequence[Opinion]
    alerts: AlertList
    joins: Sequence[tuple[str, int]]
    shared: Shared | None
    pending_resolutions: int
    history: History
    moments: Sequence[Mapping[str, str]]
    moment_place: int
    escalation: Line | None
    plan: Plan | None
    not_reached: Mapping[str, str]
    anybody_reached: bool
    overridden: Sequence[Overridden]
    team_names: Mapping[str, str]
    strip: Strip

    @property
    def rivals(self) -> list[Alternative]:
        """Components that are suspected too, or instead, or cannot be told from the cause."""
        return [one for one in self.alternatives if one.status != CLEARED]

    @property
    def ruled_out(self) -> list[Alternative]:
        return [one for one in self.alternatives if one.status == CLEARED]

    @property
    def several(self) -> bool:
        """Whether it is a group of alerts on several components, of which no analyzer names one: until then it has the
        component of its first alert."""
        return not self.opinions and is_on_several(self.incident.title)

    @property
    def agree(self) -> int:
        """Number of analyzers that blame the cause."""
        return sum(one.stance == "blames" for one in self.opinions)


def incident_page(
    number: int, as_of: Position | None = None, *, alerts: str = "", kinds: str = ""
) -> IncidentPage:
    """The page of incident `number` now, or at log position `as_of`.

    `alerts` is the cursor of the page of its alerts, `kinds` the kinds of timeline entries separated by commas, both as
    an address gives them. Raises IncidentNotFoundError and InvalidValueError.
    """
    reference, now = str(number), timezone.now()
    view = queries.get(reference, as_of)
    state = view.incident
    entries = queries.timeline(reference, as_of)
    result = moments(queries.timeline(reference) if as_of else entries)
    # Most incidents of analyzers have none, and nothing is to be asked for.
    shown = (
        alert_list(reference, alerts, as_of) if state.alerts or alerts else AlertList([], 0, 0, None, None)
    )
    examined = examine(view, entries, as_of)
    found = escalation_status(state, now) if as_of is None else escalation_status_at(state.id, as_of)
    failed, reached = failed_calls(state.id, None if as_of is None else moment(as_of))
    failure = failure_shown(view, as_of)
    return IncidentPage(
        incident=state,
        position_of_view=view.position,
        as_of=as_of,
        failure=failure,
        suspects=examined.suspects,
        assumptions=examined.assumptions,
        alternatives=examined.alternatives,
        current=examined.current,
        older=examined.older,
        evidence_version=f"{as_of}-{'-'.join(_version(group) for group in (*examined.current, *examined.older))}",
        opinions=view.opinions,
        alerts=shown,
        joins=Counter(one.why for one in shown.alerts if one.why).most_common(MOST_JOINS),
        shared=None if as_of else _shared(reference, state, shown),
        pending_resolutions=0
        if as_of or state.state != "resolved"
        else queries.alerts_pending_resolution(reference),
        history=history(entries, kinds),
        moments=result,
        moment_place=place_of(result, as_of),
        escalation=None if found is None else past_words(found) if as_of else words(found, now),
        plan=None if found is None else plan_of(found),
        not_reached=failed,
        anybody_reached=reached,
        overridden=[] if as_of else overridden(state.id, now),
        team_names={team.slug: team.name for team in queries.teams()},
        strip=strip_shown(state, failure, None, examined, shown, as_of),
    )


def strip_shown(
    state: Incident,
    failure: Failure,
    began: Beginning | None,
    examined: Examined,
    alerts: AlertList,
    as_of: Position | None,
) -> Strip:
    """The strip chart of an incident: its failures as an analyzer counted them, else its firing alerts."""
    then = state.resolved_at or (moment(as_of) if as_of else timezone.now())
    bars = slices((piece for group in examined.current for piece in group.pieces), state.cause)
    return strip_of(state, failure, began, bars or counted(alerts.spans(then)), then)


# Suspects and evidence
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Examined:
    """Suspects and evidence of the analyzers that blame the cause of an incident."""

    suspects: Sequence[Mapping[str, Any]]
    assumptions: Sequence[Mapping[str, Any]]
    alternatives: Sequence[Alternative]
    current: Sequence[Group]
    older: Sequence[Group]


def examine(view: View, entries: Sequence[Entry], as_of: Position | None) -> Examined:
    """The latest finding of each analyzer with its suspects; evidence, ruled-out components."""
    groups = grouped(queries.evidence(view.incident.id, as_of))
    attached, older = latest_of_each(groups, view.incident.analyzer)
    findings = _latest_findings(view, entries)
    current = [_as_of_the_latest_run(group, findings) for group in attached]
    finding = findings.get(view.incident.analyzer or "") or next(iter(findings.values()), None)
    verdict = None if finding is None else _verdict_of(finding)
    suspects = [] if finding is None else _suspects(view, finding, verdict)
    looked_into = cleared(piece for group in current for piece in group.pieces)
    return Examined(
        suspects=suspects,
        assumptions=verdict["assumptions"] if verdict else [],
        alternatives=alternatives(view.incident, suspects, looked_into),
        current=current,
        older=[old for old, new in zip(attached, current, strict=True) if old is not new] + older,
    )


def _latest_findings(view: View, entries: Sequence[Entry]) -> dict[str, Mapping[str, Any]]:
    """By analyzer, newest first: the latest finding that blames the incident's cause."""
    findings: dict[str, Mapping[str, Any]] = {}
    for entry in reversed(entries):
        finding = entry.body.get("finding")
        if finding and view.incident.cause & {finding["component"], *finding["ambiguous_with"]}:
            findings.setdefault(finding["analyzer"], finding)
    return findings


def _verdict_of(finding: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A run is never changed, so this holds for past moments too. None where the run is not known here."""
    run = analyzers.runs().filter(pk=finding["run"]).first()
    return None if run is None else analyzers.verdict(run)


def _as_of_the_latest_run(group: Group, findings: Mapping[str, Mapping[str, Any]]) -> Group:
    """Evidence is attached once in a while; the figures beside it are the latest, so its latest tables are shown."""
    finding = findings.get(group.analyzer or "")
    if finding is None or group.finding is None or finding["window"]["end"] <= group.finding["window"]["end"]:
        return group
    verdict = _verdict_of(finding)
    return group if verdict is None else group.renewed(finding, verdict)


def _version(group: Group) -> str:
    return f"{group.version}" if group.finding is None else f"{group.version}.{group.finding['run']}"


def _suspects(
    view: View, finding: Mapping[str, Any], verdict: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """The suspects of the latest run that blamed this incident's component, its own suspect first."""
    if verdict is None:
        return [{**finding, "own": True, "rank": 1, "estimate": None}]
    numbers = {placed.component: placed.number for placed in queries.placed_findings(finding["run"])}
    suspects = [
        {
            **suspect,
            "own": bool(view.incident.cause & {suspect["component"], *suspect["ambiguous_with"]}),
            "number": numbers.get(suspect["component"]),
        }
        for suspect in verdict["suspects"]
    ]
    return sorted(suspects, key=lambda suspect: (not suspect["own"], suspect["rank"]))


# Alerts
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Shown:
    """An alert of an incident, since when it stands as it does, and why it is there."""

    it: Alert
    since: datetime
    why: str = ""

    @property
    def state(self) -> str:
        return "over" if self.it.status == "resolved" else self.it.status


@dataclass(frozen=True, slots=True)
class AlertList:
    """One page of an incident's alerts, those that fire first."""

    alerts: list[Shown]
    total: int
    start: int
    previous: str | None
    next: str | None

    @property
    def first(self) -> int:
        return self.start + 1

    @property
    def last(self) -> int:
        return self.start + len(self.alerts)

    @property
    def at_once(self) -> list[Shown]:
        """Those that are not folded: all of a few."""
        return self.alerts if len(self.alerts) <= FEW_ALERTS else self.alerts[:ALERTS_AT_ONCE]

    @property
    def folded(self) -> list[Shown]:
        return self.alerts[len(self.at_once) :]

    @property
    def runbooks(self) -> list[tuple[str, str]]:
        """Address and text of the links of its alerts that are called a runbook, each address once, those of alerts
        that fire first. Where the texts are the same, each has the name of its alert too."""
        named: dict[str, tuple[str, Alert]] = {}
        for one in self.alerts:
            for link in one.it.alert.links:
                if "runbook" in (text := link.get("text") or "").lower():
                    named.setdefault(link["href"], (text, one.it))
        shown = [(href, *said) for href, said in named.items()][:MOST_RUNBOOKS]
        if len({text for _, text, _ in shown}) == len(shown):
            return [(href, text) for href, text, _ in shown]
        one_rule = len({one.alert.group for _, _, one in shown}) < len(shown)
        return [
            (href, f"{text}: {one.alert.title if one_rule or not one.alert.group else one.alert.group}")
            for href, text, one in shown
        ]

    def spans(self, end: datetime) -> list[tuple[datetime, datetime]]:
        """From when to when each of this page's alerts fired."""
        found = [(one.it.alert.starts_at or one.since, one) for one in self.alerts]
        return [(start, max(start, one.since) if one.state == "over" else end) for start, one in found]

    @property
    def components(self) -> int:
        return len({one.it.alert.component for one in self.alerts if one.it.alert.component})

    @property
    def why(self) -> str:
        """Reason why all of this page are members, where that is the same for several; else empty."""
        whys = {one.why for one in self.alerts}
        return whys.pop() if len(self.alerts) > 1 and len(whys) == 1 else ""

    @property
    def version(self) -> str:
        """Changes when what is shown does, and not merely because time passes."""
        shown = [(one.it.id, one.state, one.it.repeats, str(one.it.changed_at)) for one in self.alerts]
        return hashlib.sha256(json.dumps([self.total, shown]).encode()).hexdigest()[:16]


def alert_list(number: str, chosen: str, as_of: Position | None = None) -> AlertList:
    """The page of an incident's alerts that an address asks for, now or as of a moment. Raises InvalidValueError."""
    try:
        start = parse_start(chosen)
    except PageError as error:
        raise InvalidValueError("alerts", error.reason) from None
    found, total = queries.members(number, ALERTS, start, as_of)
    page = page_at(found, start, total, ALERTS)
    whys = queries.why_members(number, [one.id for one in found])
    shown = [Shown(one, _since(one), whys.get(one.id, "")) for one in found]
    return AlertList(shown, total, start, page.previous, page.next)


def _since(one: Alert) -> datetime:
    return one.changed_at if one.status == "resolved" else one.alert.starts_at or one.changed_at


def _shared(reference: str, state: Incident, alerts: AlertList) -> Shared | None:
    """Labels common to many alerts, but for those that the facts show already; None where none is left."""
    if alerts.total < MANY_ALERTS:
        return None
    found = queries.shared_labels(reference)
    labels = [one for one in found.labels if state.labels.get(one[0]) != one[1]][:MOST_SHARED]
    return replace(found, labels=labels) if labels else None


# Timeline
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Choice:
    """A kind of line, how many there are, and what the address asks for to show it alone or no more."""

    words: str
    count: int
    show: str | None
    chosen: bool


@dataclass(frozen=True, slots=True)
class History:
    """Newest first."""

    recent: Sequence[Entry]
    older: Sequence[Entry]
    choices: Sequence[Choice]
    total: int

    @property
    def hidden(self) -> int:
        """Lines of other kinds."""
        return self.total - len(self.recent) - len(self.older)


def history(entries: Sequence[Entry], chosen: str) -> History:
    """`entries` come oldest first; `chosen` names kinds, separated by commas: none means all. Raises
    InvalidValueError."""
    wanted = [name for name in chosen.split(",") if name]
    if not set(wanted) <= set(KINDS):
        raise InvalidValueError("show", f"must be of {', '.join(KINDS)}, separated by commas")
    kinds = [kind_of(entry.type, entry.actor) for entry in entries]
    counted = Counter(kinds)
    shown = [one for one, kind in zip(entries, kinds, strict=True) if not wanted or kind in wanted][::-1]
    choices = [
        Choice(KIND_WORDS[kind], counted[kind], None if kind in wanted else kind, kind in wanted)
        for kind in KINDS
        if counted[kind] or kind in wanted
    ]
    return History(shown[:RECENT], shown[RECENT:], choices, len(entries))


def moments(entries: Sequence[Entry]) -> list[dict[str, str]]:
    """Positions of the slider, oldest first: the latest so many moments, each with its position in the log."""
    return [
        {"at": rfc3339(one.last_at), "position": one.position, "text": instants_words(one.text[:LONGEST])}
        for one in entries[-MOST_MOMENTS:]
    ]


def place_of(entries: Sequence[Mapping[str, str]], as_of: Position | None) -> int:
    """Index of the moment that a position shows: the latest that is not after it; without one the last."""
    if as_of is None:
        return max(0, len(entries) - 1)
    return max(0, bisect_right([one["position"] for one in entries], str(as_of)) - 1)


# Escalation
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Line:
    """`tone` is quiet, or bad where nobody will come by themselves. `at`: when it happens, for a title."""

    text: str
    tone: str = "quiet"
    at: datetime | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    text: str
    done: bool
    next: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """People called for an incident, step by step, with the state of each step in words."""

    text: str
    steps: Sequence[PlannedStep]


def plan_of(found: EscalationStatus) -> Plan:
    one = found.escalation
    steps = () if one.policy is None else one.policy.steps
    entries = [
        PlannedStep(
            _step_words(place, step),
            done=one.phase != "starting" and (one.round > 1 or place < one.step),
            next=one.phase == "climbing" and place == one.step,
        )
        for place, step in enumerate(steps)
    ]
    policy = "" if one.policy is None else f" Policy “{one.policy.name}”"
    again = "" if one.policy is None or one.policy.rounds == 1 else f", {one.policy.rounds} rounds"
    return Plan(f"{_PHASES[one.phase]} ({one.why}).{policy}{again}{':' if steps else ''}", entries)


_PHASES = {
    "starting": "Starting",
    "climbing": "Waiting for acknowledgement",
    "exhausted": "Escalation ended",
    "uncalled": "No one is paged",
    "acknowledged": "Being worked on",
    "paused": "No one is paged",
}


def _step_words(place: int, step: Step) -> str:
    when = (
        "At once"
        if place == 0 and not step.after
        else f"After {spoken(step.after)}"
        if step.after
        else "Then"
    )
    return f"{when}: {', '.join(str(action) for action in step.actions)}"


def past_words(found: EscalationStatus) -> Line | None:
    """The line as it would have read at a moment: what was to follow, which later events may have changed."""
    one = found.escalation
    if one.phase in ("uncalled", "exhausted"):
        return words(found, one.due_at or datetime.now(UTC))
    # Until a policy is looked up, nobody knows of a call: there may be no policy.
    if one.due_at is None or one.phase != "climbing":
        return None
    what = (
        "All steps done; escalation was due to end" if one.at_end else f"The next step was due{_place(found)}"
    )
    return Line(f"{what} at {_clock(one.due_at)}", at=one.due_at)


def _clock(moment: datetime) -> str:
    return f"{times.local(moment):%H:%M} {times.offset(moment)}"


def words(found: EscalationStatus, now: datetime) -> Line | None:
    one = found.escalation
    due = one.due_at
    if one.phase == "uncalled":
        return Line(f"No one is paged: {one.why}", "bad")
    if one.phase == "exhausted":
        return Line(f"Escalation ended: {one.why}", "bad")
    if due is None or one.phase == "paused":
        return None
    if now - due > LATE:
        late = spoken((now - due).total_seconds())
        return Line(f"The next step is late by {late}; manage.py deliver may not be running", "bad", due)
    when = f"in {spoken((due - now).total_seconds())}, at {_clock(due)}" if due > now else "now"
    if one.phase == "acknowledged":
        return Line(f"Re-pages {when} without progress", at=due) if one.settled else None
    if one.at_end:
        return Line(f"All steps done; escalation ends {when}", at=due)
    lost = {} if found.next is None else unreachable(person for person, _ in found.next.people)
    missing = [_missing(found.next), *(f"{person}: {why.reason}" for person, why in lost.items())]
    alone = found.next is not None and bool(lost) and len(lost) == len(found.next.people)
    text = f"{_names_of(found.next)} {when}{_place(found)}"
    return Line(text, "bad" if alone else "quiet", at=due, why="; ".join(filter(None, missing)))


def _names_of(following: Next | None) -> str:
    if following is None:
        return "Determining recipients"
    if not following.people:
        return "Notifies no one" if not following.actions else f"Will {following.actions[0]}"
    return f"Notifies {', '.join(person for person, _ in following.people)}"


def _place(found: EscalationStatus) -> str:
    one = found.escalation
    if one.policy is None:
        return ""
    place = f"step {one.step + 1} of {len(one.policy.steps)}"
    return f" ({place}, round {one.round} of {one.policy.rounds})" if one.policy.rounds > 1 else f" ({place})"


def _missing(following: Next | None) -> str:
    return "; ".join(f"{target}: {why}" for target, why in following.unreachable) if following else ""
