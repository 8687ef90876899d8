"""An incident folded from its events: `evolve(state, event) -> state`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from incidents.domain.incident import (
    alerts,
    merge,
    ownership,
    proposals,
    questions,
    remediation,
    snooze,
    split,
)
from incidents.domain.incident.escalation import EVENTS as ESCALATION
from incidents.domain.incident.ownership import accounted
from incidents.domain.incident.state import (
    AWAKE,
    Fact,
    Incident,
    Opinion,
    Opinions,
    Shown,
    blaming,
    make,
    opinion_from,
    person,
    replace,
    suppression_overridden,
    without,
)
from incidents.domain.values import optional_time, parse_rfc3339


def evolve(state: Incident | None, event: Fact) -> Incident:
    """The state after `event`. Raises KeyError for a type that is no incident's."""
    if event.type == "incident.opened":
        return _opened(event)
    if state is None:
        raise ValueError(f"an incident's first event is incident.opened, not {event.type}")
    return _EVOLVE[event.type](state, event)


def fold(events: Iterable[Fact], state: Incident | None = None) -> Incident | None:
    for event in events:
        state = evolve(state, event)
    return state


def _opened(event: Fact) -> Incident:
    body, finding = event.body, event.body["finding"]
    opened = make(
        Incident,
        id=body["id"],
        number=body["number"],
        title=body["title"],
        description=body["description"],
        state="open",
        severity=body["severity"],
        component=body["component"],
        ambiguous_with=tuple(body["ambiguous_with"]),
        region=body["region"],
        team=body["routing"]["team"],
        routing=body["routing"]["explanation"],
        dedup_key=body["dedup_key"],
        labels=body["labels"],
        links=tuple(body["links"]),
        opened_at=event.occurred_at,
        opened_by=person(event.actor),
        team_since=event.occurred_at,
        counted_at=event.occurred_at,
        service=body["service"],
        policy=body["policy"],
        group_key=body["grouping"]["key"],
        verdict=body["verdict"],
        alerts=body["alerts"],
        reported_at=event.occurred_at if finding is None else None,
    )
    if finding is None:
        return opened
    blamed = _blamed(opened, finding, True, event.occurred_at)
    return replace(blamed, confidence=finding["score"], analyzer=finding["analyzer"], titled_by_analyzer=True)


def _blamed(state: Incident, finding: Mapping[str, Any], leads: bool, at: datetime) -> Incident:
    """Incident after any finding that joins: times, number and analyzers of the blame."""
    end = parse_rfc3339(finding["window"]["end"])
    first, last = optional_time(finding["first_failure"]), optional_time(finding["last_failure"])
    schedule = finding["schedule"]
    return replace(
        state,
        findings=state.findings + 1,
        failing_since=_earliest(state.failing_since, first),
        last_failure=_latest(state.last_failure, last),
        last_blamed=_latest(state.last_blamed, end),
        blamed_by=state.blamed_by if schedule is None else tuple(sorted({*state.blamed_by, schedule})),
        opinions=_with(state, blaming(state.opinions.get(finding["analyzer"]), finding, leads, at)),
    )


def _with(state: Incident, opinion: Opinion) -> Opinions:
    return {**state.opinions, opinion.analyzer: opinion}


def _earliest(a: datetime | None, b: datetime | None) -> datetime | None:
    return min((t for t in (a, b) if t is not None), default=None)


def _latest(a: datetime | None, b: datetime | None) -> datetime | None:
    return max((t for t in (a, b) if t is not None), default=None)


def _joined(state: Incident, event: Fact) -> Incident:
    return replace(state, alerts=state.alerts + 1, reported_at=state.reported_at or event.occurred_at)


def _alerts_joined(state: Incident, event: Fact) -> Incident:
    members = event.body["alerts"]
    return replace(
        state,
        alerts=state.alerts + event.body["new"],
        firing=state.firing + len(members),
        flapping=False,
        alert_at=event.occurred_at,
        reported_at=state.reported_at or event.occurred_at,
    )


def _alerts_resolved(state: Incident, event: Fact) -> Incident:
    return replace(
        state,
        firing=max(0, state.firing - len(event.body["alerts"])),
        flapping=state.flapping or bool(event.body["flapping"]),
        alert_at=event.occurred_at,
    )


def _finding_joined(state: Incident, event: Fact) -> Incident:
    finding, body = event.body["finding"], event.body
    # An incident that took another in is blamed by whoever names that one's cause, too; its verdict stays its own.
    names = body["leads"] or bool(state.merged_causes & {finding["component"], *finding["ambiguous_with"]})
    blamed = _blamed(state, finding, names, event.occurred_at)
    return replace(
        _concluded(blamed, body),
        component=body["component"],
        ambiguous_with=tuple(body["ambiguous_with"]),
        related={**state.related, **body.get("related", {})},
    )


def _concluded(state: Incident, body: Mapping[str, Any]) -> Incident:
    """Incident with the joint opinion of the analyzers; None in the event leaves it unchanged."""
    return replace(
        state,
        confidence=state.confidence if body["confidence"] is None else body["confidence"],
        analyzer=body["analyzer"] or state.analyzer,
        verdict=body["verdict"] or state.verdict,
        title=(body.get("title") or state.title) if state.titled_by_analyzer else state.title,
    )


def _finding_recorded(state: Incident, _: Fact) -> Incident:
    return replace(state, findings=state.findings + 1)


def _no_longer_blamed(state: Incident, event: Fact) -> Incident:
    schedule = event.body["schedule"]
    opinions = {name: without(one, schedule) for name, one in state.opinions.items()}
    left = tuple(s for s in state.blamed_by if s != schedule)
    return _concluded(replace(state, blamed_by=left, opinions=opinions), event.body)


def _opinion_changed(state: Incident, event: Fact) -> Incident:
    opinion = opinion_from(event.body["opinion"])
    return _concluded(replace(state, opinions=_with(state, opinion)), event.body)


def _question_answered(state: Incident, event: Fact) -> Incident:
    return _concluded(questions.answered(state, event), event.body)


def _cause_missed(state: Incident, event: Fact) -> Incident:
    missed_by = {**state.missed_by, event.body["analyzer"]: event.body["version"]}
    return replace(state, missed_by=missed_by)


def _evidence_attached(state: Incident, event: Fact) -> Incident:
    finding = event.body["finding"]
    if finding is None:
        return state
    shown = Shown(finding["score"], parse_rfc3339(finding["window"]["end"]))
    return replace(state, shown={**state.shown, finding["analyzer"]: shown})


def _acknowledged(state: Incident, event: Fact) -> Incident:
    actor = person(event.actor)
    return accounted(
        state,
        event.occurred_at,
        state="acknowledged",
        acknowledged_at=event.occurred_at,
        acknowledged_by=actor,
        owner=state.owner or actor,
        took_ownership=state.owner is None,
        **AWAKE,
    )


def _unacknowledged(state: Incident, event: Fact) -> Incident:
    took = state.took_ownership and state.owner == state.acknowledged_by
    return accounted(
        state,
        event.occurred_at,
        state="open",
        acknowledged_at=None,
        acknowledged_by=None,
        owner=None if took else state.owner,
        took_ownership=False,
    )


def _assigned(state: Incident, event: Fact) -> Incident:
    return accounted(state, event.occurred_at, owner=event.body["owner"], took_ownership=False)


def _reassigned(state: Incident, event: Fact) -> Incident:
    return proposals.lapsed(ownership.handed_over(state, event), moved_only=True)


def _as_it_was(state: Incident, _: Fact) -> Incident:
    return state


def _severity_set(state: Incident, event: Fact) -> Incident:
    by_person = state.severity_by_person or event.body["by_person"]
    return replace(state, severity=event.body["severity"], severity_by_person=by_person)


def _title_set(state: Incident, event: Fact) -> Incident:
    return replace(state, title=event.body["title"], titled_by_analyzer=False)


def _linked(state: Incident, event: Fact) -> Incident:
    link = {"href": event.body["href"], "text": event.body["text"]}
    return replace(state, links=(*state.links, link))


def _resolved(state: Incident, event: Fact) -> Incident:
    return accounted(
        state,
        event.occurred_at,
        state="resolved",
        resolved_at=event.occurred_at,
        resolved_by=person(event.actor),
        confirmed_cause=event.body["confirmed_cause"],
        known_until={feed: parse_rfc3339(at) for feed, at in event.body["known_until"].items()},
        seconds_to_team=ownership.seconds_to_team(state),
        handed_over=None,
        **AWAKE,
        overridden=(),
        firing=0,
        flapping=False,
        blamed_by=(),
        opinions={name: replace(one, schedules=()) for name, one in state.opinions.items()},
        proposals=(),
    )


def _reopened(state: Incident, event: Fact) -> Incident:
    return accounted(
        remediation.demanded_again(state),
        event.occurred_at,
        state="open",
        seconds_to_team=None,
        resolved_at=None,
        resolved_by=None,
        confirmed_cause=None,
        known_until={},
        missed_by={},
        acknowledged_at=None,
        acknowledged_by=None,
    )


_EVOLVE: dict[str, Callable[[Incident, Fact], Incident]] = {
    "incident.report_joined": _joined,
    "incident.alerts_joined": _alerts_joined,
    "incident.alerts_resolved": _alerts_resolved,
    "incident.symptoms_joined": alerts.symptoms_joined,
    "incident.alerts_removed": alerts.alerts_left,
    "incident.linked_to_cause": alerts.explained,
    "incident.maintenance_noted": alerts.explained,
    "incident.finding_joined": _finding_joined,
    "incident.finding_recorded": _finding_recorded,
    "incident.finding_cleared": _no_longer_blamed,
    "incident.opinion_changed": _opinion_changed,
    "incident.analyzer_missed_cause": _cause_missed,
    "incident.evidence_attached": _evidence_attached,
    "incident.acknowledged": _acknowledged,
    "incident.unacknowledged": _unacknowledged,
    "incident.assigned": _assigned,
    "incident.reassigned": _reassigned,
    "incident.reassignment_accepted": ownership.accepted,
    "incident.reassignment_rejected": ownership.rejected,
    "incident.reassignment_undone": ownership.hand_over_undone,
    "incident.snoozed": snooze.snoozed,
    "incident.unsnoozed": snooze.unsnoozed,
    "incident.suppression_overridden": suppression_overridden,
    "incident.merged": lambda state, event: proposals.lapsed(merge.merged(state, event)),
    "incident.merge_received": merge.absorbed,
    "incident.unmerged": merge.was_split,
    "incident.merge_undone": merge.separated,
    "incident.split_from": split.split_off,
    "incident.alerts_moved": split.alerts_split_off,
    "incident.commented": _as_it_was,
    "incident.notified": _as_it_was,
    "incident.severity_set": _severity_set,
    "incident.title_set": _title_set,
    "incident.linked": _linked,
    "incident.remediation_requested": remediation.requested,
    "incident.remediation_answered": remediation.answered,
    "incident.repair_judged": remediation.judged,
    "incident.proof_waived": remediation.waived,
    "incident.probe_requested": questions.probe_requested,
    "incident.question_answered": _question_answered,
    "incident.action_proposed": proposals.proposed,
    "incident.proposal_accepted": proposals.decided,
    "incident.proposal_declined": proposals.decided,
    "incident.theory_checked": _as_it_was,
    "incident.status_published": _as_it_was,
    "incident.resolved": _resolved,
    "incident.reopened": _reopened,
    # How far an escalation has come is folded beside the incident (`domain.escalation`).
    **dict.fromkeys(ESCALATION, _as_it_was),
}

EVENT_TYPES: tuple[str, ...] = ("incident.opened", *_EVOLVE)
