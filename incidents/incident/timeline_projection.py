"""Timeline and evidence of one incident, from its events: pure, used by the read models and by `as_of`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from incidents.domain.incident.timeline import repeated, sentence
from ingest.queries import Event

# A finding joins every few minutes for as long as a failure lasts, an alert may be repeated ten thousand times: the
# timeline counts those in a row.
COUNTED = frozenset(
    {
        "incident.alerts_joined",
        "incident.alerts_resolved",
        "incident.symptoms_joined",
        "incident.alerts_removed",
        "incident.finding_joined",
        "incident.finding_recorded",
        "incident.report_joined",
        "incident.opinion_changed",
    }
)
_BLAMES = frozenset({"incident.finding_joined", "incident.finding_recorded"})
EVIDENCE = "incident.evidence_attached"
LOOKS_BACK = COUNTED | {EVIDENCE}
"""What may change the line before it."""


_ELSEWHERE = frozenset(
    {
        (EVIDENCE, "items"),
        ("incident.alerts_joined", "alerts"),
        ("incident.alerts_resolved", "alerts"),
        ("incident.symptoms_joined", "alerts"),
        ("incident.symptoms_joined", "hows"),
        ("incident.symptoms_joined", "how_of"),
        ("incident.alerts_removed", "alerts"),
        ("incident.merge_received", "alerts"),
        ("incident.split_from", "alerts"),
        ("incident.split_from", "resting"),
        ("incident.alerts_moved", "alerts"),
        ("incident.unmerged", "alerts"),
        ("incident.merge_undone", "alerts"),
    }
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the timeline: the event `version`, or `count` like findings up to `last_version`."""

    version: int
    last_version: int
    count: int
    type: str
    at: datetime
    last_at: datetime
    actor: str
    trace: str | None
    text: str
    body: Mapping[str, Any]
    position: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A table, chart or text, attached by event `version`, with the finding and parameters it is from."""

    version: int
    place: int
    kind: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    chart: Mapping[str, Any]
    text: str
    at: datetime
    actor: str
    analyzer: str | None
    finding: Mapping[str, Any] | None
    params: Mapping[str, Any] | None


def next_entry(last: Entry | None, event: Event) -> Entry:
    """The entry that `event` adds, or the last one counted on: then it keeps that one's `version`."""
    entry = Entry(
        version=event.version,
        last_version=event.version,
        count=1,
        type=event.type,
        at=event.occurred_at,
        last_at=event.occurred_at,
        actor=event.actor,
        trace=event.trace,
        text=sentence(event),
        # Pieces of evidence and member alerts have read models of their own.
        body={name: value for name, value in event.body.items() if (event.type, name) not in _ELSEWHERE},
        position=str(event.position),
    )
    if last is not None and _is_of(last, event):
        return replace(last, last_version=event.version, last_at=event.occurred_at, position=entry.position)
    if last is None or last.type != event.type or event.type not in COUNTED:
        return entry
    if _source(last.type, last.actor, last.body) != _source(event.type, event.actor, event.body):
        return entry
    count = last.count + 1
    return replace(entry, version=last.version, at=last.at, count=count, text=repeated(event, count))


def _is_of(last: Entry, event: Event) -> bool:
    """Whether this is the evidence of the runs that the last line counts: a line of its own would end the count."""
    if event.type != EVIDENCE or last.type not in _BLAMES or event.body["finding"] is None:
        return False
    return bool(event.body["finding"]["analyzer"] == last.body["finding"]["analyzer"])


def _source(type_: str, actor: str, body: Mapping[str, Any]) -> str:
    if type_ == "incident.opinion_changed":
        return str(body["opinion"]["analyzer"])
    if type_ == "incident.alerts_joined":
        return str(body["why"])
    if type_ == "incident.alerts_removed":
        return str(body["why"])
    if type_ == "incident.symptoms_joined":
        return "" if body["source"] is None else str(body["source"]["number"])
    if type_ == "incident.alerts_resolved":
        return "flapping" if body["flapping"] else ""
    return actor if type_ == "incident.report_joined" else str(body["finding"]["analyzer"])


def timeline_of(events: Iterable[Event]) -> list[Entry]:
    """Oldest first."""
    entries: dict[int, Entry] = {}
    last: Entry | None = None
    for event in events:
        last = next_entry(last, event)
        entries[last.version] = last
    return list(entries.values())


def evidence_in(event: Event) -> list[Evidence]:
    """The pieces that one event attached."""
    if event.type != EVIDENCE:
        return []
    finding = event.body["finding"]
    return [
        Evidence(
            version=event.version,
            place=place,
            kind=item["kind"],
            title=item["title"],
            columns=item.get("columns", []),
            rows=item.get("rows", []),
            chart=item.get("chart", {}),
            text=item.get("text", ""),
            at=event.occurred_at,
            actor=event.actor,
            analyzer=None if finding is None else finding["analyzer"],
            finding=finding,
            params=event.body["params"],
        )
        for place, item in enumerate(event.body["items"])
    ]


def worth_a_screen(attached: Iterable[tuple[int, str | None]]) -> set[int]:
    """Of (version, analyzer) pairs the versions to show: of an analyzer what it had first and has now."""
    versions: dict[str | None, list[int]] = {}
    for version, analyzer in attached:
        versions.setdefault(analyzer, []).append(version)
    people = versions.pop(None, [])
    return {*people, *(end for found in versions.values() for end in (min(found), max(found)))}
