"""Alerts of incidents: grouping, storms, and symptoms of a cause. Pure.

- An alert joins the open incident that it is a member of already.
- Else the open incident of a finding that names its component: the alert is a symptom of that cause.
- Else the open incident of its group: the alerts of one rule for one team, or the grouping of its route.
- Else it opens an incident; in a storm, when an integration has just opened STORM_INCIDENTS of the same severity or
  worse, one incident for the rest.

A component fails with what contains it, with what it depends on, and with what lies on its path. The search goes
upward from the alert by at most MOST_HOPS steps; the nearest cause wins, and each component is visited once, so
cycles end. Of equally near causes the one with the first relation wins (contained, dependent, on the path), then
the first by name: the same topology always gives the same answer.

A symptom leaves its incident by one event and joins the incident of the cause by another; each says why. An
incident that people work on keeps its alerts and is linked to the cause.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from incidents.domain.incident.state import (
    Bodies,
    Fact,
    Incident,
    Opinions,
    raise_severity,
    refuse_resolved,
    replace,
)
from incidents.domain.routing.rules import EACH_ALONE, Grouping, Routing, Subject
from incidents.domain.values import SEVERITIES, TEXT_LIMIT, TITLE_LIMIT, Severity, is_worse

# Grouping
# ----------------------------------------------------------------------------------------------------------
STORM_KEY: Final = "storm:"
"""Beginning of the dedup key of an incident that collects a storm."""
STORM_INCIDENTS: Final = 100
STORM_SPAN: Final = timedelta(minutes=5)
"""An integration that opened so many incidents within so long is in a storm."""


class Reported(msgspec.Struct, frozen=True):
    """Fields of an event `alert.reported` for incidents.

    A struct of msgspec, as `Member` and `Subject` are: a storm makes one an alert, at a fifth of a dataclass's cost.
    """

    alert: str
    integration: str
    key: str
    change: str
    status: str
    title: str
    severity: Severity
    group: str
    component: str | None
    text: str
    labels: Mapping[str, str]
    links: Sequence[Mapping[str, str]]
    fired: int
    annotations: Mapping[str, str] | None = None

    @property
    def description(self) -> str:
        """The alert's own, and below it the annotations that nothing else of an incident shows."""
        rest = [
            f"{name}: {said}"
            for name, text in (self.annotations or {}).items()
            if (said := text.strip()) not in ("", self.title)
            and said not in self.text
            and not name.startswith("__")
            and not _is_link(said)
        ]
        return "\n\n".join(filter(None, (self.text, "\n".join(rest))))[:TEXT_LIMIT]

    @property
    def fires(self) -> bool:
        return self.status != "resolved"

    @property
    def name(self) -> str:
        """The rule or check that fired; empty where its sender has none."""
        return self.labels.get("alertname") or self.group

    @property
    def matched(self) -> dict[str, str]:
        return matched_labels(self.labels, self.component, self.integration, self.key)

    def subject(self, at: datetime) -> Subject:
        """Subject for routes, of an alert that was recorded at `at`."""
        return Subject(
            component=self.component,
            labels=self.labels,
            severity=self.severity,
            integration=self.integration,
            at=at,
        )


def matched_labels(
    labels: Mapping[str, str], component: str | None, integration: str, key: str
) -> dict[str, str]:
    """Labels for the matchers of silences: those of the alert, and where no label has that name, its `component`,
    `integration` and `dedup_key`, so that an alert without labels can be silenced."""
    named = {} if component is None else {"component": component}
    return {**named, "integration": integration, "dedup_key": key, **labels}


def reported_from(body: Mapping[str, Any]) -> Reported:
    return Reported(
        body["alert"],
        body["integration"],
        body["key"],
        body["change"],
        body["status"],
        body["title"],
        body["severity"],
        body["group"],
        body["component"],
        body["description"],
        body["labels"],
        body["links"],
        body["fired"],
        body.get("annotations"),
    )


def _is_link(text: str) -> bool:
    """Whether it is among the links already."""
    return text.startswith(("http://", "https://")) and not any(map(str.isspace, text))


@dataclass(frozen=True, slots=True)
class Place:
    """The incident of an alert by its dedup key, and why it is that one.

    With a `group_key` it is the latest incident of that group, unless it was opened longer ago than `window`:
    then a new one opens, and no dedup key could be that of both. `shared` names what its alerts have in common: the
    alert rule, or the values that the route groups by.
    """

    dedup_key: str
    why: str
    group_key: str | None = None
    window: timedelta | None = None
    shared: str = ""

    def opened_as(self, number: int) -> str:
        """The dedup key of the incident with this number."""
        return self.dedup_key if self.group_key is None else f"{self.dedup_key}#{number}"


def place_of(alert: Reported, routing: Routing) -> Place:
    """Incident for the alert in quiet times: as its route groups, else with the other alerts of its rule for the
    same team."""
    grouping = routing.grouping
    if grouping.by is not None and grouping.by != EACH_ALONE:
        return _group(alert, routing, grouping.by)
    place = _alone_or_by_rule(alert, routing.team, alone=grouping.by == EACH_ALONE)
    if grouping.window is None:
        return place
    return replace(place, why=_within(place.why, grouping), group_key=place.dedup_key, window=grouping.window)


def is_by_rule(alert: Reported, routing: Routing) -> bool:
    """Whether all alerts of its rule and integration that are routed so have the same place."""
    return routing.grouping.by is None and bool(alert.group)


def _alone_or_by_rule(alert: Reported, team: str, *, alone: bool) -> Place:
    if alone or not alert.group:
        return Place(f"alert:{alert.integration}:{alert.key}", "same key of the same integration")
    why = f"all {alert.group} alerts of {team} from {alert.integration} are grouped"
    return Place(f"alerts:{alert.integration}:{team}:{alert.group}", why, shared=alert.group)


def _group(alert: Reported, routing: Routing, by: Sequence[str]) -> Place:
    """One incident for what a route gets with the same labels, whichever integration sends it."""
    values = {name: _value(alert, routing, name) for name in by}
    rule = routing.path[-1] if routing.path else ""
    text = f"{rule}:{routing.team}:{','.join(f'{name}={value}' for name, value in values.items())}"
    # A key has an index, which takes no long texts; and one that is cut would mix up what is not the same.
    key = text if len(text) <= 200 else f"{text[:150]}…{sha256(text.encode()).hexdigest()[:24]}"
    same = " and ".join(f"{name} {value or 'none'}"[:100] for name, value in values.items())
    why = f"route {rule} groups by {same}" if values else f"route {rule} groups all its alerts"
    place = Place(
        f"alerts:{alert.integration}:{key}", why, f"route:{key}", routing.grouping.window, _shared(values)
    )
    return place if place.window is None else replace(place, why=_within(why, routing.grouping))


def _shared(values: Mapping[str, str]) -> str:
    """`DiskFull, cluster a1`; without the component, which a title names anyway."""
    others = {name: value for name, value in values.items() if value and name != "component"}
    return ", ".join(
        value if name in ("rule", "alertname") else f"{name} {value}" for name, value in others.items()
    )


def _value(alert: Reported, routing: Routing, name: str) -> str:
    """Of a label; or of what an alert has besides labels, unless a label is called so."""
    own = {
        "component": alert.component,
        "integration": alert.integration,
        "rule": alert.group,
        "service": routing.service,
    }
    return alert.labels.get(name) or own.get(name) or ""


def _within(why: str, grouping: Grouping) -> str:
    return why if grouping.window is None else f"{why}, within {_minutes(grouping.window)} of its opening"


def storm_place(integration: str, team: str) -> Place:
    """Incident in a storm for an alert that has none yet."""
    within = f"within {_minutes(STORM_SPAN)}, of at least this severity"
    why = f"storm: {integration} opened more than {STORM_INCIDENTS} incidents {within}"
    return Place(f"{STORM_KEY}{integration}:{team}", why)


def is_of_alerts(dedup_key: str) -> bool:
    """Whether alerts opened an incident by the place that they had."""
    return dedup_key.startswith(("alert:", "alerts:", STORM_KEY))


def is_storm(dedup_key: str) -> bool:
    """Whether an incident collects what comes too fast to be an incident each."""
    return dedup_key.startswith(STORM_KEY)


def symptom(component: str) -> str:
    return f"same component {component}"


def is_symptom(why: str) -> bool:
    """Whether an alert joined for that reason because of its component alone."""
    return why.startswith(symptom(""))


def _minutes(span: timedelta) -> str:
    return f"{int(span.total_seconds() // 60)} minutes"


def worst(severities: Iterable[Severity]) -> Severity:
    return min(severities, key=SEVERITIES.index)


def in_common(alerts: Sequence[Reported]) -> dict[str, str]:
    """The labels that all of them carry with the same value."""
    if not alerts:
        return {}
    shared = dict(alerts[0].labels)
    for alert in alerts[1:]:
        shared = {name: value for name, value in shared.items() if alert.labels.get(name) == value}
    return shared


class Member(msgspec.Struct, frozen=True):
    """An alert that joins an incident; `again` if it was a member before and had been resolved."""

    alert: str
    title: str
    severity: Severity
    again: bool = False


# Storms
# ----------------------------------------------------------------------------------------------------------
MANY: Final = 50
"""So many incidents within `SPAN` are more than people can look at one by one."""
SPAN: Final = STORM_SPAN


FEW_NAMES: Final = STORM_INCIDENTS // 2
"""A storm of fewer names (rules, checks) than that is about these; an alert of another name is no part of it."""
MOST_INCIDENTS: Final = 2 * STORM_INCIDENTS
"""Incidents of an integration within `SPAN`, as severe or worse, above which another name is no reason for one more."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An incident that an integration opened within `SPAN`: its severity's rank (0 is the worst) and what fired."""

    rank: int
    name: str


def is_storming(opened: Collection[Opened], rank: int, name: str) -> bool:
    """Whether an alert of that severity and name joins the incident of the storm and opens none of its own.

    Only incidents that are as severe or worse count, so that no number of lesser ones hides a critical alert; and a
    storm of few names hides no other name. At most MOST_INCIDENTS open for each severity.
    """
    as_severe = [one for one in opened if one.rank <= rank]
    if len(as_severe) < STORM_INCIDENTS:
        return False
    names = {one.name for one in as_severe}
    return name in names or len(names) >= FEW_NAMES or len(as_severe) >= MOST_INCIDENTS


def place_without_incident(
    place: Place, team: str, alerts: Sequence[Reported], recent: list[Opened]
) -> Place:
    """Incident for alerts whose place has no open one: that of the storm, or a new one, which is added to `recent`, the
    openings of their integration within `SPAN`."""
    integration, name = alerts[0].integration, alerts[0].name
    rank = SEVERITIES.index(worst(one.severity for one in alerts))
    if is_storming(recent, rank, name):
        return storm_place(integration, team)
    recent.append(Opened(rank, name))
    return place


@dataclass(frozen=True, slots=True)
class Storming:
    """An open incident that collects the alerts of a storm."""

    number: int
    title: str
    alerts: int
    firing: int


@dataclass(frozen=True, slots=True)
class Storm:
    """State of a storm: the incidents that collect it, the largest first, and the number opened within `SPAN`."""

    gatherings: tuple[Storming, ...]
    arrivals: int

    @property
    def alerts(self) -> int:
        return sum(one.alerts for one in self.gatherings)

    @property
    def firing(self) -> int:
        return sum(one.firing for one in self.gatherings)

    @property
    def minutes(self) -> int:
        return int(SPAN.total_seconds() // 60)


def at_least(count: int) -> int:
    """The largest of 10, 20, 50, 100, 200 … that is no more than a count; 0 below 10. What is said so stays true while
    more comes, and is said anew a few times only."""
    step = 0
    for place in range(1, len(str(count))):
        step = max([step, *(digit * 10**place for digit in (1, 2, 5) if digit * 10**place <= count)])
    return step


def storm_title(integration: str, alerts: int, components: Collection[str]) -> str:
    """`Storm from prometheus: 20,000+ alerts on 200+ components`, as far as that is known."""
    least = at_least(alerts)
    return f"Storm from {integration}: {f'{least:,}+ ' if least else ''}alerts{_where(components)}"[
        :TITLE_LIMIT
    ]


def group_title(shared: str, alerts: int, titles: Collection[str], components: Collection[str]) -> str:
    """`DiskFull: 50+ alerts on 50+ components of the kind host`, for a group of 10 or more. What comes before the colon
    is the title of all of them where they have the same, else what their group shares."""
    counted = f"{at_least(alerts):,}+ alerts{_where(components)}"
    about = next(iter(titles)) if len(titles) == 1 else shared
    return f"{about[: TITLE_LIMIT - len(counted) - 2]}: {counted}" if about else counted


def title_of_the_rest(title: str, alerts: int, components: Collection[str]) -> str | None:
    """The title of a group or storm once alerts have left it: `DiskFull: fewer than 10 alerts on vm/v1`. None where the
    title tells no number of alerts, or one that still holds."""
    found = _COUNTED.fullmatch(title)
    if found is None or alerts >= int(found["least"].replace(",", "")):
        return None
    least = at_least(alerts)
    where = _where(components) or (f" on {_kind(components)}" if components else "")
    counted = f"{f'{least:,}+' if least else 'fewer than 10'} alerts{where}"
    return f"{found['about'][: TITLE_LIMIT - len(counted)]}{counted}"


def about_all(
    title: str, titles: Collection[str], components: Collection[str]
) -> tuple[Collection[str], Collection[str]]:
    """Titles and components of a large group of which only the newest alerts were read: what they have in common counts
    where its title until now says it of those before them, too."""
    found = _COUNTED.fullmatch(title)
    about, where = ("", None) if found is None else (found["about"].removesuffix(": "), found["where"])
    return {*titles, about}, () if len(components) == 1 and where not in components else components


def is_on_several(title: str) -> bool:
    """Whether the title of a group or storm tells that its alerts are on several components."""
    return _ON_SEVERAL.search(title) is not None


_COUNTED: Final = re.compile(r"(?P<about>(?:.*: )?)(?P<least>[0-9,]+)\+ alerts(?: on (?P<where>.*))?")
_ON_SEVERAL: Final = re.compile(
    r"(?:[0-9]\+|fewer than 10) alerts on (?:[0-9,]+\+ )?components(?: of the kind \S+)?$"
)


def _where(components: Collection[str]) -> str:
    if len(components) == 1:
        return f" on {next(iter(components))}"
    on = at_least(len(components))
    return f" on {on:,}+ {_kind(components)}" if on else ""


def _kind(components: Collection[str]) -> str:
    kinds = {name.partition("/")[0] for name in components}
    return f"components of the kind {kinds.pop()}" if len(kinds) == 1 else "components"


def storm_of(gatherings: Sequence[Storming], arrivals: int) -> Storm | None:
    """A storm is on while an incident collects one, or while many incidents come at once; else None."""
    if not gatherings and arrivals < MANY:
        return None
    return Storm(tuple(gatherings), arrivals)


# Explanations
# ----------------------------------------------------------------------------------------------------------
MOST_HOPS: Final = 4
"""A VM in a host in a rack behind a switch is three hops away; much further up everything explains everything."""

Relation = Literal["contained", "depends", "path"]
_WORDS: Mapping[Relation, str] = {
    "contained": "is contained in",
    "depends": "depends on",
    "path": "has a path that crosses",
}
_ORDER: Mapping[Relation, int] = {"contained": 0, "depends": 1, "path": 2}


@dataclass(frozen=True, slots=True)
class Links:
    """Names that a component is contained in, depends on, and whose path it crosses."""

    parents: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    path: tuple[str, ...] = ()

    def each(self) -> Iterable[tuple[Relation, str]]:
        yield from (("contained", name) for name in sorted(self.parents))
        yield from (("depends", name) for name in sorted(self.depends_on))
        yield from (("path", name) for name in sorted(self.path))


@dataclass(frozen=True, slots=True)
class Explanation:
    """`hops` is 0 where the component is the cause itself; `how` is a sentence without its full stop; `contained`: the
    component is a part of the cause, at some remove, and nothing but that."""

    component: str
    cause: str
    hops: int
    how: str
    contained: bool = False


@dataclass(frozen=True, slots=True)
class _Way:
    """Route to a component: the relations to it, and the names in between, the last one itself."""

    relations: tuple[Relation, ...]
    names: tuple[str, ...]

    @property
    def order(self) -> tuple[tuple[int, ...], tuple[str, ...]]:
        return tuple(_ORDER[one] for one in self.relations), self.names


def explain(
    component: str, causes: Collection[str], links: Mapping[str, Links], hops: int = MOST_HOPS
) -> Explanation | None:
    """Reason why an alert on `component` is a symptom of one of `causes`; None where it is not, as far as `links`
    tell."""
    if component in causes:
        return Explanation(component, component, 0, f"same component {component}")
    layer, seen = {component: _Way((), ())}, {component}
    for distance in range(1, hops + 1):
        layer = _next(layer, seen, links)
        found = min((way for name, way in layer.items() if name in causes), key=_order, default=None)
        if found is not None:
            part = set(found.relations) == {"contained"}
            return Explanation(component, found.names[-1], distance, _sentence(component, found), part)
        seen |= layer.keys()
    return None


def _order(way: _Way) -> tuple[tuple[int, ...], tuple[str, ...]]:
    return way.order


def _next(layer: Mapping[str, _Way], seen: Collection[str], links: Mapping[str, Links]) -> dict[str, _Way]:
    """Next layer: components that those of a layer rest on, new ones only, each by the first route to it."""
    reached: dict[str, _Way] = {}
    for name, way in layer.items():
        for relation, up in links.get(name, Links()).each():
            if up in seen:
                continue
            new = _Way((*way.relations, relation), (*way.names, up))
            if up not in reached or new.order < reached[up].order:
                reached[up] = new
    return reached


def _sentence(component: str, way: _Way) -> str:
    steps = [f"{_WORDS[one]} {name}" for one, name in zip(way.relations, way.names, strict=True)]
    return f"{component} {', which '.join(steps)}"


def is_blamed(opinions: Opinions) -> bool:
    """Whether an analyzer still says that the incident's cause has failed; a forecast explains nothing yet."""
    return any(one.stance == "blames" and not one.forecast for one in opinions.values())


def explains(state: Incident) -> bool:
    """Whether alerts on what rests on the incident's cause are its symptoms."""
    return state.state != "resolved" and bool(state.findings) and is_blamed(state.opinions)


# Symptoms
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class IncidentReference:
    """An incident as another one's events name it."""

    id: str
    number: int
    title: str

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "number": self.number, "title": self.title}


@dataclass(frozen=True, slots=True)
class Symptom:
    """An alert that fires, and how the incident's cause explains it."""

    member: Member
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class JoinSymptoms:
    """Alerts that the cause of this open incident explains; `source` is the incident that they were in, if any."""

    symptoms: tuple[Symptom, ...]
    source: IncidentReference | None = None


@dataclass(frozen=True, slots=True)
class RemoveAlerts:
    """Members that belong here no more, of which `firing` still fire; `target` is where they go, if that is known."""

    alerts: tuple[str, ...]
    firing: int
    why: str
    target: IncidentReference | None = None


@dataclass(frozen=True, slots=True)
class LinkToCause:
    """Another incident's cause explains `alerts` of this one, which stays as it is because of `reason`."""

    by: IncidentReference
    explanation: Explanation
    alerts: int
    reason: str


def join_symptoms(state: Incident, command: JoinSymptoms) -> Bodies:
    refuse_resolved(state)
    members = [one.member for one in command.symptoms]
    explanations = list(dict.fromkeys(one.explanation for one in command.symptoms))
    place = {how: number for number, how in enumerate(explanations)}
    body = {
        "alerts": [member.alert for member in members],
        "new": sum(not member.again for member in members),
        "title": members[-1].title,
        "explanations": [
            {"component": how.component, "cause": how.cause, "hops": how.hops, "how": how.how}
            for how in explanations
        ],
        "explanation_of": [place[one.explanation] for one in command.symptoms],
        "source": None if command.source is None else command.source.as_json(),
    }
    events: Bodies = [("incident.symptoms_joined", body)]
    severity = worst(member.severity for member in members)
    if is_worse(severity, state.severity) and not state.severity_by_person:
        events.append(raise_severity(severity, state, "a joined symptom has a higher severity"))
    return events


def leave_alerts(_: Incident, command: RemoveAlerts) -> Bodies:
    body = {
        "alerts": list(command.alerts),
        "firing": command.firing,
        "target": None if command.target is None else command.target.as_json(),
        "why": command.why,
    }
    return [("incident.alerts_removed", body)]


def note_explained(state: Incident, command: LinkToCause) -> Bodies:
    refuse_resolved(state)
    how = command.explanation
    body = {
        "by": command.by.as_json(),
        "component": how.component,
        "cause": how.cause,
        "how": how.how,
        "alerts": command.alerts,
        "reason": command.reason,
    }
    return [("incident.linked_to_cause", body)]


# Folding
# ----------------------------------------------------------------------------------------------------------
def symptoms_joined(state: Incident, event: Fact) -> Incident:
    return replace(
        state,
        alerts=state.alerts + event.body["new"],
        firing=state.firing + len(event.body["alerts"]),
        flapping=False,
        alert_at=event.occurred_at,
        reported_at=state.reported_at or event.occurred_at,
    )


def alerts_left(state: Incident, event: Fact) -> Incident:
    return replace(
        state,
        alerts=max(0, state.alerts - len(event.body["alerts"])),
        firing=max(0, state.firing - event.body["firing"]),
    )


def explained(state: Incident, _: Fact) -> Incident:
    return state


# Sentences
# ----------------------------------------------------------------------------------------------------------
def _count(number: int) -> str:
    return "an alert" if number == 1 else f"{number} alerts"


def symptoms_joined_sentence(body: Mapping[str, Any]) -> str:
    how, others = body["explanations"][-1]["how"], len(body["explanations"]) - 1
    more = "" if not others else f", likewise for {others} more component{'' if others == 1 else 's'}"
    source = "" if body["source"] is None else f"; from #{body['source']['number']}"
    joined = "joined as a symptom" if len(body["alerts"]) == 1 else "joined as symptoms, last"
    return f"{_count(len(body['alerts']))} {joined}: {body['title']}; {how}{more}{source}"


def alerts_removed_sentence(body: Mapping[str, Any]) -> str:
    target = "" if body["target"] is None else f" for #{body['target']['number']}"
    return f"{_count(len(body['alerts']))} left this incident{target}: {body['why']}"


def linked_to_cause_sentence(body: Mapping[str, Any]) -> str:
    by = body["by"]
    explains = f"#{by['number']} “{by['title']}” explains {_count(body['alerts'])}: {body['how']}"
    return f"{explains}; kept as a separate incident: {body['reason']}"


def whys_of(bodies: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """By alert, from bodies of `incident.symptoms_joined`: why it joined."""
    return {
        alert: str(body["explanations"][place]["how"])
        for body in bodies
        for alert, place in zip(body["alerts"], body["explanation_of"], strict=True)
    }
