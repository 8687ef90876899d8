"""The timeline of an incident: one sentence an event, and the kinds of events that people filter it by. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, get_args

from incidents.domain.incident.alerts import (
    alerts_removed_sentence,
    linked_to_cause_sentence,
    symptoms_joined_sentence,
)
from incidents.domain.incident.finding import percent
from incidents.domain.incident.proposals import accepted_sentence, declined_sentence, proposed_sentence
from incidents.domain.incident.questions import answered_sentence as question_answered_sentence
from incidents.domain.incident.questions import requested_probe_sentence
from incidents.domain.incident.remediation import (
    answered_sentence,
    judged_sentence,
    requested_sentence,
    waived_sentence,
)
from incidents.domain.incident.split import alerts_moved_sentence, split_from_sentence
from incidents.domain.incident.state import Fact
from incidents.domain.incident.status_updates import status_sentence
from incidents.domain.incident.theories import checked_sentence
from incidents.domain.values import parse_rfc3339

# Kinds
# ----------------------------------------------------------------------------------------------------------
TimelineKind = Literal["people", "analyzers", "alerts", "routing", "notifications"]
KINDS: Final[tuple[TimelineKind, ...]] = get_args(TimelineKind)

_NAMES: Final[Mapping[TimelineKind, str]] = {
    "analyzers": "finding_joined finding_recorded finding_cleared opinion_changed analyzer_missed_cause"
    " repair_judged probe_requested question_answered",
    "alerts": "report_joined alerts_joined alerts_resolved alerts_removed symptoms_joined linked_to_cause "
    "maintenance_noted",
    "routing": "opened reassigned reassignment_accepted reassignment_rejected reassignment_undone merged "
    "merge_received unmerged merge_undone split_from"
    " alerts_moved",
    "notifications": "notified escalation_started escalated escalation_exhausted escalation_skipped",
}
_ALWAYS: Final[Mapping[str, TimelineKind]] = {
    f"incident.{name}": kind for kind, names in _NAMES.items() for name in names.split()
}
_BY_ITSELF: Final[Mapping[str, TimelineKind]] = {
    "incident.evidence_attached": "analyzers",
    "incident.severity_set": "alerts",
    "incident.resolved": "alerts",
    "incident.unacknowledged": "notifications",
}
"""Actions that Dossier takes by itself; by a person they count as work of people."""


def kind_of(type_: str, actor: str) -> TimelineKind:
    """The kind of an event: by its type, else by who did it."""
    if type_ in _ALWAYS:
        return _ALWAYS[type_]
    return _BY_ITSELF.get(type_, "routing") if actor.startswith("system:") else "people"


# Notified
# ----------------------------------------------------------------------------------------------------------
def _notified(_: str, body: Mapping[str, Any]) -> str:
    recipient = _recipient(body)
    others = body["incidents"] - 1
    if body["outcome"] == "sent":
        together = (
            f", with {others} other incident{'' if others == 1 else 's'} in one message" if others else ""
        )
        return f"Notified {recipient}{together}: {body['reason']}"
    if body["outcome"] == "failed":
        return f"Attempt {body['attempt']} to notify {recipient} failed: {body['why']}"
    if body["outcome"] == "delayed":
        return f"Notification to {recipient} delayed: {body['why']}"
    if body["outcome"] == "stopped":
        return f"Notification to {recipient} cancelled: {body['why']}"
    return f"Could not reach {recipient}: {body['why']}"


def _recipient(body: Mapping[str, Any]) -> str:
    if body["person"] is None:
        return str(body["method"])
    return str(body["person"]) + ("" if body["method"] is None else f" by {body['method']}")


# Sentences
# ----------------------------------------------------------------------------------------------------------
def actor_name(actor: str) -> str:
    """`user:alice` is alice, `key:ci` is "key ci", `system:…` is Dossier itself."""
    kind, _, name = actor.partition(":")
    if kind == "user":
        return name
    if kind == "key":
        return f"key {name}"
    return "Dossier" if kind == "system" else actor


def sentence(event: Fact) -> str:
    return _SENTENCES[event.type](actor_name(event.actor), event.body)


def repeated(event: Fact, count: int) -> str:
    """One sentence for `count` events of the kind in a row, the last of which is `event`."""
    if event.type == "incident.report_joined":
        return (
            f"{actor_name(event.actor)} reported the incident {count} more times, last: {event.body['title']}"
        )
    if event.type == "incident.opinion_changed":
        return f"{sentence(event)} (verdict changed {count} times)"
    if event.type in _LAST_OF:
        return f"{sentence(event)} (the last of {count} times)"
    finding = event.body["finding"]
    over = "" if event.type == "incident.finding_joined" else " for failures before the resolution"
    runs = f"{count} runs of {finding['analyzer']}"
    return f"{runs} again suspected {finding['component']}{over}{_score(finding, ', last ')}"


_LAST_OF = frozenset(
    {
        "incident.alerts_joined",
        "incident.alerts_resolved",
        "incident.symptoms_joined",
        "incident.alerts_removed",
        "incident.repair_judged",
    }
)


def _minute(time: str) -> str:
    return f"{parse_rfc3339(time):%Y-%m-%d %H:%M} UTC"


def _score(finding: Mapping[str, Any], before: str = ", ") -> str:
    """The score after what stands `before` it; nothing where a method gives none."""
    score = finding["score"]
    return "" if score is None else f"{before}{percent(score)} likely at fault"


def _opened(name: str, body: Mapping[str, Any]) -> str:
    finding = body["finding"]
    if finding is None:
        return f"{name} opened the incident; {body['routing']['explanation']}"
    blamed = f"{finding['analyzer']} suspected {finding['component']}"
    return f"{blamed}; {body['why']}; {body['routing']['explanation']}"


def _alerts_joined(_: str, body: Mapping[str, Any]) -> str:
    count, again = len(body["alerts"]), len(body["alerts"]) - body["new"]
    fired = (
        f"an alert fired: {body['title']}" if count == 1 else f"{count} alerts fired, last: {body['title']}"
    )
    back = "" if not again else " again" if again == count else f" ({again} of them again)"
    return f"{fired}{back}; {body['why']}"


def _alerts_resolved(_: str, body: Mapping[str, Any]) -> str:
    count, flapping = len(body["alerts"]), len(body["flapping"])
    over = "an alert resolved" if count == 1 else f"{count} alerts resolved"
    if not flapping:
        return over
    which = "it is" if count == 1 else f"{flapping} are"
    return f"{over}; {which} flapping, so the incident stays open until quiet"


def _joined(name: str, body: Mapping[str, Any]) -> str:
    return f"{name} reported the incident again: {body['title']}"


def _finding_joined(_: str, body: Mapping[str, Any]) -> str:
    finding = body["finding"]
    others = [one for one in body["agreeing"] if one != finding["analyzer"]]
    if body.get("relation"):
        same = f"the same fault, as {body['relation']}"
        return f"{finding['analyzer']} suspected {finding['component']}{_score(finding)}: {same}"
    if not others:
        return f"{finding['analyzer']} again suspected {finding['component']}{_score(finding)}"
    agree = f"in agreement with {' and '.join(others)}"
    together = (
        "" if body["confidence"] is None else f": together {percent(body['confidence'])} likely at fault"
    )
    return f"{finding['analyzer']} suspected {finding['component']}{_score(finding)}, {agree}{together}"


def _finding_recorded(_: str, body: Mapping[str, Any]) -> str:
    finding = body["finding"]
    blamed = f"{finding['analyzer']} suspected {finding['component']}"
    return f"{blamed} for failures before the resolution; no incident was opened"


def _no_longer_blamed(_: str, body: Mapping[str, Any]) -> str:
    # `analyzer` in the body is whose verdict the incident shows from now on, if any is left.
    return f"{body['schedule']} found no fault here in the window that ended {_minute(body['window_end'])}"


def _opinion_changed(_: str, body: Mapping[str, Any]) -> str:
    opinion = body["opinion"]
    window = f"the window that ended {_minute(opinion['window']['end'])}"
    if opinion["stance"] == "blames_other":
        return f"{opinion['analyzer']} suspects {opinion['component']} instead{_score(opinion)}"
    if opinion["stance"] == "no_longer_blames":
        return f"{opinion['analyzer']} no longer suspects this component in {window}"
    return f"{opinion['analyzer']} found nothing here in {window}"


def _cause_missed(_: str, body: Mapping[str, Any]) -> str:
    count = body["windows"]
    windows = f"{count} window{'' if count == 1 else 's'}"
    return f"{body['analyzer']} missed {body['confirmed_cause']} in {windows}"


def _evidence(name: str, body: Mapping[str, Any]) -> str:
    count, finding = len(body["items"]), body["finding"]
    source = name if finding is None else f"{finding['analyzer']} {finding['version']}"
    return f"{source} attached {count} piece{'' if count == 1 else 's'} of evidence"


def _assigned(name: str, body: Mapping[str, Any]) -> str:
    owner = body["owner"]
    if owner is None:
        return f"{name} unassigned {body['previous']}"
    return f"{name} took ownership" if owner == name else f"{name} assigned the incident to {owner}"


def _handed_over(name: str, body: Mapping[str, Any]) -> str:
    return f"{name} handed the incident over from {body['from']} to {body['to']}: {body['reason']}"


def _bounced(name: str, body: Mapping[str, Any]) -> str:
    return f"{name} rejected the hand-over from {body['from']} to {body['to']}: {body['reason']}"


def _hand_over_undone(name: str, body: Mapping[str, Any]) -> str:
    return f"{name} undid the hand-over to {body['from']}; back with {body['to']}"


def _merged(name: str, body: Mapping[str, Any]) -> str:
    return f"{name} merged this incident into {_reference(body['into'])}{_because(body['reason'])}"


def _absorbed(name: str, body: Mapping[str, Any]) -> str:
    taken = f"{_reference(body['incident'])} into this incident{_firing(len(body['alerts']))}"
    return f"{name} merged {taken}{_because(body['reason'])}"


def _split(name: str, body: Mapping[str, Any]) -> str:
    firing = _firing(len(body["alerts"]))
    return f"{name} undid the merge into #{body['from']['number']}{firing}{_because(body['reason'])}"


def _separated(name: str, body: Mapping[str, Any]) -> str:
    return f"{name} undid the merge of #{body['incident']['number']}{_firing(body['firing'])}{_because(body['reason'])}"


def _reference(reference: Mapping[str, Any]) -> str:
    return f"#{reference['number']} “{reference['title']}”"


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _firing(count: int) -> str:
    return "" if not count else f", with {count} firing alert{'' if count == 1 else 's'}"


def _snoozed(name: str, body: Mapping[str, Any]) -> str:
    until = "a change" if body["until"] is None else _minute(body["until"])
    if body.get("silence") or name == "Dossier":
        return f"Notifications suppressed until {until}{_because(body['reason'])}"
    return f"{name} snoozed the incident until {until}{_because(body['reason'])}"


def _unsnoozed(name: str, body: Mapping[str, Any]) -> str:
    if body["undone"] and body["why"]:
        return f"Notifications resumed: {body['why']}"
    return f"{name} undid the snooze" if body["undone"] else f"snooze ended: {body['why']}"


def _overridden(name: str, body: Mapping[str, Any]) -> str:
    covers = "; ".join(one["why"] for one in body["covers"])
    return f"{name} overrode the suppression of this incident: {covers}"


def _severity_set(name: str, body: Mapping[str, Any]) -> str:
    reason = f": {body['reason']}" if body["reason"] else ""
    return f"{name} set the severity from {body['previous']} to {body['severity']}{reason}"


def _resolved(name: str, body: Mapping[str, Any]) -> str:
    cause = body["confirmed_cause"]
    if cause is None:
        return f"{name} resolved the incident: {body['note']}"
    confirmed = "false alarm" if cause == "none" else f"cause {cause}"
    return f"{name} resolved the incident: {confirmed}{_after(body['note'])}"


def _after(text: str) -> str:
    return f". {text}" if text else ""


def _unacknowledged(name: str, body: Mapping[str, Any]) -> str:
    return f"open again: {body['why']}" if body["why"] else f"{name} removed the acknowledgement"


def _escalation_started(name: str, body: Mapping[str, Any]) -> str:
    begun = "Escalation policy" if name == "Dossier" else f"{name} started escalation policy"
    return f"{begun} “{body['policy']['name']}”{' started' if name == 'Dossier' else ''}: {body['why']}"


def _escalated(name: str, body: Mapping[str, Any]) -> str:
    called = [_called(one) for one in body["called"]] + [f"channel {one}" for one in body["channels"]]
    missed = "; ".join(f"could not notify {one['target']}: {one['why']}" for one in body["unreachable"])
    notified = f"notified {', '.join(called)}" if called else ""
    done = "; ".join(part for part in (notified, missed) if part) or "ran a step without recipients"
    place = f"step {body['step']} of {body['steps']}"
    if body["rounds"] > 1:
        place += f", round {body['round']} of {body['rounds']}"
    return f"{name} {done} ({place}): {body['why']}"


def _called(one: Mapping[str, str]) -> str:
    return one["person"] if one["as"] == one["person"] else f"{one['person']} ({one['as']})"


_SENTENCES: dict[str, Callable[[str, Mapping[str, Any]], str]] = {
    "incident.opened": _opened,
    "incident.report_joined": _joined,
    "incident.alerts_joined": _alerts_joined,
    "incident.alerts_resolved": _alerts_resolved,
    "incident.symptoms_joined": lambda _, b: symptoms_joined_sentence(b),
    "incident.alerts_removed": lambda _, b: alerts_removed_sentence(b),
    "incident.maintenance_noted": lambda _, b: f"maintenance at {b['component']}: {b['why']}",
    "incident.linked_to_cause": lambda _, b: linked_to_cause_sentence(b),
    "incident.finding_joined": _finding_joined,
    "incident.finding_recorded": _finding_recorded,
    "incident.finding_cleared": _no_longer_blamed,
    "incident.opinion_changed": _opinion_changed,
    "incident.analyzer_missed_cause": _cause_missed,
    "incident.evidence_attached": _evidence,
    "incident.acknowledged": lambda name, _: f"{name} acknowledged the incident",
    "incident.unacknowledged": _unacknowledged,
    "incident.assigned": _assigned,
    "incident.reassigned": _handed_over,
    "incident.reassignment_accepted": lambda name, b: f"{name} accepted the incident for {b['team']}",
    "incident.reassignment_rejected": _bounced,
    "incident.reassignment_undone": _hand_over_undone,
    "incident.snoozed": _snoozed,
    "incident.suppression_overridden": _overridden,
    "incident.unsnoozed": _unsnoozed,
    "incident.merged": _merged,
    "incident.merge_received": _absorbed,
    "incident.unmerged": _split,
    "incident.merge_undone": _separated,
    "incident.split_from": split_from_sentence,
    "incident.alerts_moved": alerts_moved_sentence,
    "incident.commented": lambda name, b: f"{name}: {b['text']}",
    "incident.notified": _notified,
    "incident.severity_set": _severity_set,
    "incident.title_set": lambda name, b: f"{name} changed the title to “{b['title']}”",
    "incident.linked": lambda name, b: f"{name} linked {b['text'] or b['href']}",
    "incident.remediation_requested": requested_sentence,
    "incident.remediation_answered": answered_sentence,
    "incident.repair_judged": judged_sentence,
    "incident.proof_waived": waived_sentence,
    "incident.probe_requested": requested_probe_sentence,
    "incident.question_answered": question_answered_sentence,
    "incident.theory_checked": checked_sentence,
    "incident.status_published": status_sentence,
    "incident.action_proposed": proposed_sentence,
    "incident.proposal_accepted": accepted_sentence,
    "incident.proposal_declined": declined_sentence,
    "incident.resolved": _resolved,
    "incident.escalation_started": _escalation_started,
    "incident.escalated": _escalated,
    "incident.escalation_exhausted": lambda _, b: f"escalation ended: {b['why']}",
    "incident.escalation_skipped": lambda _, b: f"no one is paged: {b['why']}",
    "incident.reopened": lambda name, b: f"{name} reopened the incident{_after(b['reason'])}",
}
