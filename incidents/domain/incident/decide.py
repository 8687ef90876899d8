"""`decide(state, command, now) -> events`: the events that follow from a command, or its refusal. Pure.

`contending` names the events that make a command stale. An incident has sides that are decided apart: its work,
its severity, its title. Only a change of the same side counts; a comment, a finding or an alert never does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from incidents.domain.incident import commands as c
from incidents.domain.incident.alerts import (
    Member,
    at_least,
    group_title,
    in_common,
    is_storm,
    join_symptoms,
    leave_alerts,
    note_explained,
    storm_title,
    worst,
)
from incidents.domain.incident.conclusion import AS_BEFORE, conclusion, reconsidered
from incidents.domain.incident.escalation import exhaust, forget, skip_escalation, start, take_step
from incidents.domain.incident.finding import (
    Finding,
    cause_after,
    is_beside,
    names_cause,
    related_by,
    severity_of,
    title_of,
    verdict_of,
    worth_showing,
)
from incidents.domain.incident.merge import absorb, merge_into, separate, split
from incidents.domain.incident.ownership import accept, bounce, hand_over, undo_hand_over
from incidents.domain.incident.proposals import accept_proposal, decline_proposal, propose_action
from incidents.domain.incident.questions import answer_question, request_probe
from incidents.domain.incident.remediation import (
    ANSWERED,
    REQUESTED,
    answer_remediation,
    hand_to_cluster,
    judge_repair,
    proof_waived,
    refuse_unproved,
)
from incidents.domain.incident.snooze import note_planned, snooze, undo_snooze, unsnoozed_by, wake_when_due
from incidents.domain.incident.split import open_split_off, split_alerts_off
from incidents.domain.incident.state import (
    Bodies,
    Incident,
    after_word,
    at_second,
    blaming,
    opening,
    raise_severity,
    refuse_merged,
    refuse_resolved,
    resolution,
    without,
)
from incidents.domain.incident.status_updates import record_status_update
from incidents.domain.incident.theories import record_theory
from incidents.domain.values import (
    DEFAULT_SEVERITY,
    LINKS_LIMIT,
    CommandRefusedError,
    Severity,
    is_worse,
    optional_rfc3339,
    parse_rfc3339,
)
from ingest.log.types import NewEvent

# Conflicts
# ----------------------------------------------------------------------------------------------------------
WORK: Final = frozenset(
    f"incident.{name}"
    for name in (
        "acknowledged",
        "unacknowledged",
        "assigned",
        "reassigned",
        "reassignment_accepted",
        "reassignment_rejected",
        "reassignment_undone",
        "snoozed",
        "merged",
        "unmerged",
        "resolved",
        "reopened",
    )
)
_WORKING: Final = (
    c.Acknowledge,
    c.Unacknowledge,
    c.Assign,
    c.HandOver,
    c.Accept,
    c.Bounce,
    c.Snooze,
    c.Undo,
    c.MergeInto,
    c.Split,
    c.Resolve,
    c.Reopen,
    c.StartEscalation,
    c.TakeStep,
    c.AcceptProposal,
)
_CONTENDS: Mapping[type, frozenset[str]] = {
    **dict.fromkeys(_WORKING, WORK),
    c.HandToCluster: frozenset({REQUESTED, ANSWERED, "incident.resolved", "incident.merged"}),
    c.SetSeverity: frozenset({"incident.severity_set"}),
    c.SetTitle: frozenset({"incident.title_set"}),
}


@dataclass(frozen=True, slots=True)
class Happened:
    """A line of the timeline that the asker had not seen."""

    type: str
    at: datetime
    actor: str
    text: str
    position: str


class ConcurrentChangeError(CommandRefusedError):
    """Somebody else was first. `meanwhile` says who did what and when; asking again from there may go through."""

    def __init__(self, number: int, meanwhile: tuple[Happened, ...], reason: str = "") -> None:
        last = meanwhile[-1]
        text = f"{last.text} ({at_second(last.at)})"
        super().__init__(f"{reason}; meanwhile: {text}" if reason else f"#{number} has changed: {text}")
        self.meanwhile = meanwhile


def contending(command: c.Command) -> frozenset[str]:
    """The types of events that make `command` stale; none for what adds and changes nothing."""
    return _CONTENDS.get(type(command), frozenset())


# Alerts
# ----------------------------------------------------------------------------------------------------------
def open_for_alerts(command: c.OpenForAlerts) -> Bodies:
    opened = {
        **opening(command.id, command.number, command.routing, command.group_key),
        **(_of_a_storm(command) if is_storm(command.dedup_key) else _of_a_group(command)),
        "severity": command.routing.severity or worst(alert.severity for alert in command.alerts),
        "ambiguous_with": [],
        "region": None,
        "dedup_key": command.dedup_key,
        "alerts": 0,
        "verdict": None,
        "finding": None,
        "why": command.why,
    }
    members = [Member(alert.alert, alert.title, alert.severity) for alert in command.alerts]
    return [("incident.opened", opened), _members_joined(members, command.why)]


def _of_a_group(command: c.OpenForAlerts) -> dict[str, Any]:
    """Subject of an incident: its first alert, and the common part of all of them. Many of them share a title."""
    first, many = command.alerts[0], at_least(len(command.alerts)) > 0
    return {
        "title": _title_of_group(command) if many else first.title,
        "description": first.description,
        "component": first.component,
        "labels": in_common(command.alerts),
        "links": [dict(link) for link in first.links],
    }


def _title_of_group(command: c.OpenForAlerts) -> str:
    titles = {alert.title for alert in command.alerts}
    components = {alert.component for alert in command.alerts if alert.component is not None}
    return group_title(command.shared, len(command.alerts), titles, components)


def _of_a_storm(command: c.OpenForAlerts) -> dict[str, Any]:
    """A storm is not about its first alert: whatever comes after that has another component and other labels."""
    components = {alert.component for alert in command.alerts if alert.component is not None}
    return {
        "title": storm_title(command.alerts[0].integration, len(command.alerts), components),
        "description": "",
        "component": None,
        "labels": {},
        "links": [],
    }


def _members_joined(members: Sequence[Member], why: str) -> tuple[str, dict[str, Any]]:
    body = {
        "alerts": [member.alert for member in members],
        "new": sum(not member.again for member in members),
        "title": members[-1].title,
        "why": why,
    }
    return "incident.alerts_joined", body


def join_alerts(state: Incident, command: c.JoinAlerts) -> Bodies:
    refuse_resolved(state)
    severity = worst(member.severity for member in command.members)
    return [
        _members_joined(command.members, command.why),
        *_worsened(state, severity, "a joined alert has a higher severity"),
    ]


def note_worse(state: Incident, command: c.RaiseSeverity) -> Bodies:
    return _worsened(state, command.severity, f"severity of an alert raised: {command.title}")


def _worsened(state: Incident, severity: Severity, reason: str) -> Bodies:
    if state.state == "resolved" or state.severity_by_person or not is_worse(severity, state.severity):
        return []
    return [raise_severity(severity, state, reason)]


def resolve_alerts(_: Incident, command: c.ResolveAlerts) -> Bodies:
    return [
        ("incident.alerts_resolved", {"alerts": list(command.alerts), "flapping": list(command.flapping)})
    ]


def auto_resolve(state: Incident, command: c.AutoResolve) -> Bodies:
    """Alerts that are over resolve an incident that only they made, and a demanded proof of repair one that nothing
    blames any more; what else is known waits for a person."""
    if state.state == "resolved" or state.firing or any(one.waits for one in state.merged.values()):
        return []
    found = state.remediation
    if found is not None and found.resolves:
        return [] if state.blamed_by else [resolution(None, command.why, command.known_until)]
    if state.findings or state.alert_at is None or (found is not None and found.demands_proof):
        return []
    return [resolution(None, command.why, command.known_until)]


# Commands
# ----------------------------------------------------------------------------------------------------------
__all__ = ["DEFAULT_SEVERITY", "CommandRefusedError", "decide"]


def decide(state: Incident | None, command: c.Command, now: datetime) -> list[NewEvent]:
    """The events that carry out `command` at `now`; none where it is already so. Raises CommandRefusedError."""
    if isinstance(command, c.Open | c.OpenForFinding | c.OpenForAlerts | c.OpenSplitOff):
        if state is not None:
            raise CommandRefusedError(f"#{state.number} is already open")
        bodies = _OPEN[type(command)](command)
    elif state is None:
        raise CommandRefusedError("no such incident")
    else:
        timed = _DECIDE_BY_TIME.get(type(command))
        bodies = timed(state, command, now) if timed else _DECIDE[type(command)](state, command)
        bodies = [*bodies, *unsnoozed_by(state, bodies)]
    return [NewEvent(type_, body, now) for type_, body in bodies]


def _open(command: c.Open) -> Bodies:
    report = command.report
    opened = {
        **opening(command.id, command.number, command.routing),
        "title": report.title,
        "description": report.description,
        "severity": command.routing.severity or report.severity or DEFAULT_SEVERITY,
        "component": report.component,
        "ambiguous_with": [],
        "region": report.region,
        # A report without a key stands alone, so its incident's key is its own.
        "dedup_key": report.dedup_key or f"incident:{command.id}",
        "labels": dict(report.labels),
        "links": [dict(link) for link in report.links],
        "alerts": 0 if report.dedup_key is None else 1,
        "verdict": None,
        "finding": None,
        "why": "opened by a report",
    }
    return [("incident.opened", opened), *_attached(report.evidence)]


def _open_for_finding(command: c.OpenForFinding) -> Bodies:
    finding = command.finding
    opened = {
        **opening(command.id, command.number, command.routing),
        "title": title_of(finding),
        "description": finding.summary,
        "severity": command.routing.severity or severity_of(finding),
        "component": finding.component,
        "ambiguous_with": list(finding.ambiguous_with),
        "region": finding.region,
        "dedup_key": command.dedup_key,
        "labels": {},
        "links": [],
        "alerts": 0,
        "verdict": verdict_of(finding, finding.score),
        "finding": finding.reference(),
        "why": command.why,
    }
    return [("incident.opened", opened), *_attached(finding.evidence, finding)]


def _attached(evidence: tuple[Mapping[str, Any], ...], finding: Finding | None = None) -> Bodies:
    if not evidence:
        return []
    body = {
        "items": [dict(item) for item in evidence],
        "finding": None if finding is None else finding.reference(),
        "params": None if finding is None else dict(finding.params),
    }
    return [("incident.evidence_attached", body)]


def _join(state: Incident, command: c.Join) -> Bodies:
    refuse_resolved(state)
    report = command.report
    body = {
        "title": report.title,
        "description": report.description,
        "component": report.component,
        "severity": report.severity,
        "labels": dict(report.labels),
        "links": [dict(link) for link in report.links],
        "dedup_key": report.dedup_key,
    }
    raised: Bodies = []
    severity = report.severity or state.severity
    if is_worse(severity, state.severity) and not state.severity_by_person:
        raised = [raise_severity(severity, state, "a joined report has a higher severity")]
    return [("incident.report_joined", body), *raised, *_attached(report.evidence)]


def _join_finding(state: Incident, command: c.JoinFinding) -> Bodies:
    refuse_resolved(state)
    finding = command.finding
    relation = command.relation
    beside = relation is None and is_beside(state, finding)
    leads = relation is not None or (names_cause(state, finding) and not beside)
    component, ambiguous_with = cause_after(state, finding, relation)
    shows = not beside and worth_showing(state.shown.get(finding.analyzer), finding)
    reference = finding.reference()
    opinion = blaming(state.opinions.get(finding.analyzer), reference, leads, None)
    opinions = {**state.opinions, finding.analyzer: opinion}
    cause = frozenset(name for name in (component, *ambiguous_with) if name)
    related = related_by(state, finding, relation)
    named = cause | state.related.keys() | related.keys()
    body = {
        "finding": reference,
        "leads": leads,
        "component": component,
        "ambiguous_with": list(ambiguous_with),
        **(conclusion(opinions, component, cause, named) if leads else AS_BEFORE),
        "evidence": "attached" if shows else "counted",
        "relation": None if relation is None else relation.how,
        "related": related,
    }
    events: Bodies = [("incident.finding_joined", body)]
    severity = command.severity or severity_of(finding)
    if leads and not state.severity_by_person and is_worse(severity, state.severity):
        events.append(raise_severity(severity, state, "the latest finding has a higher severity"))
    return events + (_attached(finding.evidence, finding) if shows else [])


def _record_finding(state: Incident, command: c.RecordFinding) -> Bodies:
    if state.state != "resolved":
        raise CommandRefusedError(f"#{state.number} is not resolved")
    return [("incident.finding_recorded", {"finding": command.finding.reference()})]


def _note_no_longer_blamed(state: Incident, command: c.ClearFinding) -> Bodies:
    window_end = parse_rfc3339(command.window_end)
    late = state.last_blamed is not None and window_end <= state.last_blamed
    if state.state == "resolved" or command.schedule not in state.blamed_by or late:
        return []
    body = {
        "schedule": command.schedule,
        "run": command.run,
        "window_end": command.window_end,
        **reconsidered(state, {n: without(o, command.schedule) for n, o in state.opinions.items()}),
    }
    return [("incident.finding_cleared", body)]


def _note_opinion(state: Incident, command: c.NoteOpinion) -> Bodies:
    before = state.opinions.get(command.word.analyzer)
    opinion = after_word(before, command.word)
    if state.state == "resolved" or opinion is None:
        return []
    body = {
        "opinion": opinion.as_json(),
        "previous": None if before is None else before.stance,
        **reconsidered(state, {**state.opinions, opinion.analyzer: opinion}),
    }
    return [("incident.opinion_changed", body)]


def _note_missed(state: Incident, command: c.RecordMissedCause) -> Bodies:
    """Noted once for a resolution; one that was reopened or changed meanwhile is noted anew by its own."""
    if state.state != "resolved" or state.confirmed_cause != command.confirmed_cause:
        return []
    if command.analyzer in state.missed_by:
        return []
    body = {
        "confirmed_cause": command.confirmed_cause,
        "analyzer": command.analyzer,
        "version": command.version,
        "windows": command.windows,
        "window": {"start": command.window_start, "end": command.window_end},
        "run": command.run,
    }
    return [("incident.analyzer_missed_cause", body)]


def _note_notified(_: Incident, command: c.NoteNotified) -> Bodies:
    body = {name: getattr(command, name) for name in c.NoteNotified.__slots__ if name != "until"}
    return [("incident.notified", {**body, "until": optional_rfc3339(command.until)})]


def _attach_evidence(_: Incident, command: c.AttachEvidence) -> Bodies:
    return _attached(command.evidence)


def _acknowledge(state: Incident, _: c.Acknowledge) -> Bodies:
    refuse_resolved(state)
    if state.state == "acknowledged" and state.acknowledged_at is not None:
        at = at_second(state.acknowledged_at)
        raise CommandRefusedError(
            f"#{state.number} is already acknowledged, by {state.acknowledged_by} at {at}"
        )
    return [("incident.acknowledged", {})]


def _unacknowledge(state: Incident, _: c.Unacknowledge) -> Bodies:
    if state.state != "acknowledged":
        raise CommandRefusedError(f"#{state.number} is not acknowledged (state: {state.state})")
    return [("incident.unacknowledged", {"why": ""})]


def _assign(state: Incident, command: c.Assign) -> Bodies:
    refuse_resolved(state)
    if command.owner == state.owner:
        return []
    return [("incident.assigned", {"owner": command.owner, "previous": state.owner})]


def _undo(state: Incident, command: c.Undo) -> Bodies:
    """Undo of the last action, which the state holds: a snooze ends with a hand-over."""
    latest: c.Undoable = "snooze" if state.state == "snoozed" else "hand_over"
    what = command.what or latest
    if what == "merge":
        raise CommandRefusedError(f"#{state.number} is not merged")
    if what == "split_off":
        raise CommandRefusedError(f"#{state.number} was not split off from another incident")
    return undo_snooze(state, command.overriding) if what == "snooze" else undo_hand_over(state)


def _comment(_: Incident, command: c.Comment) -> Bodies:
    return [("incident.commented", {"text": command.text, "links": [dict(link) for link in command.links]})]


def _set_severity(state: Incident, command: c.SetSeverity) -> Bodies:
    if command.severity == state.severity and state.severity_by_person:
        return []
    body = {"severity": command.severity, "previous": state.severity, "by_person": True, "reason": ""}
    return [("incident.severity_set", body)]


def _set_title(state: Incident, command: c.SetTitle) -> Bodies:
    if command.title == state.title:
        return []
    return [("incident.title_set", {"title": command.title, "previous": state.title})]


def _name_group(state: Incident, command: c.NameGroup) -> Bodies:
    """Name of a group; a name that a person gave meanwhile stays."""
    if state.state == "resolved" or state.title != command.instead_of:
        return []
    return _set_title(state, c.SetTitle(command.title))


def _link(state: Incident, command: c.Link) -> Bodies:
    link = {"href": command.href, "text": command.text}
    if link in state.links:
        return []
    if len(state.links) >= LINKS_LIMIT:
        raise CommandRefusedError(f"#{state.number} has {LINKS_LIMIT} links already")
    return [("incident.linked", link)]


def _resolve(state: Incident, command: c.Resolve) -> Bodies:
    refuse_merged(state)
    if state.state == "resolved" and state.resolved_at is not None:
        at = at_second(state.resolved_at)
        raise CommandRefusedError(f"#{state.number} is already resolved, by {state.resolved_by} at {at}")
    waived = proof_waived(state, command.without_proof)
    return [*waived, resolution(command.confirmed_cause, command.note, command.known_until)]


def _accept_proposal(state: Incident, command: c.AcceptProposal) -> Bodies:
    """A hand-over is carried out here; a silence is of no incident, and the caller's."""
    found, accepted = accept_proposal(state, command)
    if found.team is None:
        return accepted
    return [*accepted, *hand_over(state, c.HandOver(found.team, found.reason))]


def _merge_into(state: Incident, command: c.MergeInto) -> Bodies:
    refuse_unproved(state)
    return merge_into(state, command)


def _reopen(state: Incident, command: c.Reopen) -> Bodies:
    refuse_merged(state)
    if state.state != "resolved":
        raise CommandRefusedError(f"#{state.number} is not resolved (state: {state.state})")
    return [("incident.reopened", {"reason": command.reason})]


_OPEN: dict[type, Callable[[Any], Bodies]] = {
    c.Open: _open,
    c.OpenForFinding: _open_for_finding,
    c.OpenForAlerts: open_for_alerts,
    c.OpenSplitOff: open_split_off,
}
_DECIDE_BY_TIME: dict[type, Callable[[Incident, Any, datetime], Bodies]] = {
    c.Snooze: snooze,
    c.Unsnooze: wake_when_due,
    c.TakeStep: take_step,
    c.Exhaust: exhaust,
    c.Forget: forget,
    c.HandToCluster: hand_to_cluster,
    c.AnswerRemediation: answer_remediation,
    c.RequestProbe: request_probe,
    c.AnswerQuestion: answer_question,
    c.ProposeAction: propose_action,
}
_DECIDE: dict[type, Callable[[Incident, Any], Bodies]] = {
    c.JoinAlerts: join_alerts,
    c.JoinSymptoms: join_symptoms,
    c.RemoveAlerts: leave_alerts,
    c.LinkToCause: note_explained,
    c.RecordMaintenance: note_planned,
    c.ResolveAlerts: resolve_alerts,
    c.AutoResolve: auto_resolve,
    c.RaiseSeverity: note_worse,
    c.Join: _join,
    c.JoinFinding: _join_finding,
    c.RecordFinding: _record_finding,
    c.ClearFinding: _note_no_longer_blamed,
    c.NoteOpinion: _note_opinion,
    c.RecordMissedCause: _note_missed,
    c.NoteNotified: _note_notified,
    c.AttachEvidence: _attach_evidence,
    c.Acknowledge: _acknowledge,
    c.Unacknowledge: _unacknowledge,
    c.Assign: _assign,
    c.HandOver: hand_over,
    c.Accept: accept,
    c.Bounce: bounce,
    c.Undo: _undo,
    c.MergeInto: _merge_into,
    c.Absorb: absorb,
    c.Split: split,
    c.Separate: separate,
    c.SplitAlertsOff: split_alerts_off,
    c.Comment: _comment,
    c.SetSeverity: _set_severity,
    c.SetTitle: _set_title,
    c.NameGroup: _name_group,
    c.Link: _link,
    c.Resolve: _resolve,
    c.Reopen: _reopen,
    c.AcceptProposal: _accept_proposal,
    c.DeclineProposal: decline_proposal,
    c.RecordTheory: record_theory,
    c.RecordStatusUpdate: record_status_update,
    c.JudgeRepair: judge_repair,
    c.StartEscalation: start,
    c.SkipEscalation: skip_escalation,
}
