"""An incident handed to the cluster: the request, the answers, the proof of repair, and resolving without it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from incidents.domain.incident.nodes import is_part
from incidents.domain.incident.state import (
    Bodies,
    Fact,
    Incident,
    at_second,
    person,
    refuse_merged,
    refuse_resolved,
    replace,
)
from incidents.domain.remediation.order import Order, order_as_json
from incidents.domain.remediation.state import (
    ANSWERS,
    IN_PROGRESS,
    WORDS,
    Answer,
    AnswerKind,
    Remediation,
    Waived,
    answer_from,
    check_node,
)
from incidents.domain.values import (
    CommandRefusedError,
    InvalidValueError,
    check_component,
    check_line,
    check_text,
    rfc3339,
)

REQUESTED: Final = "incident.remediation_requested"
ANSWERED: Final = "incident.remediation_answered"
JUDGED: Final = "incident.repair_judged"
WAIVED: Final = "incident.proof_waived"

SKEW: Final = timedelta(minutes=5)
"""Largest error of a cluster's clock: an answer that is so much early counts as of the answer before it."""
LONGEST_REASON: Final = 2_000


# Commands
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class HandToCluster:
    """`request` is the id of what is asked for; `component` one that the incident blames, a node or a part of `node`.

    `target` names the webhook that carries the request; None: the commands are carried out by hand. `url` is the
    address of the incident.
    """

    request: str
    component: str
    node: str
    target: str | None
    reason: str
    proof_required: bool
    url: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", check_text("reason", self.reason, LONGEST_REASON, blank=False))
        check_node(self.node)


@dataclass(frozen=True, slots=True)
class AnswerRemediation:
    """The answer of the cluster to a request, by whom, when (None: now), and for `replaced` the part that is in now.

    `part` is a component, or a serial number alone: then it is of the kind of the part before it.
    """

    request: str
    answer: AnswerKind
    by: str
    note: str = ""
    at: datetime | None = None
    part: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "request", check_line("request", self.request, 64))
        if self.answer not in ANSWERS:
            raise InvalidValueError("answer", f"must be one of {', '.join(ANSWERS)}")
        object.__setattr__(self, "by", check_line("by", self.by))
        object.__setattr__(self, "note", check_text("note", self.note, LONGEST_REASON))
        if self.part is not None:
            object.__setattr__(self, "part", check_line("part", self.part))
            if self.answer != "replaced":
                raise InvalidValueError("part", "is only of a part that was replaced")


@dataclass(frozen=True, slots=True)
class JudgeRepair:
    """The verdict and the figures of the sequential test over the rows of the returned part."""

    request: str
    proof: Mapping[str, Any]


# Decisions
# ----------------------------------------------------------------------------------------------------------
def hand_to_cluster(state: Incident, command: HandToCluster, now: datetime) -> Bodies:
    refuse_resolved(state)
    before = state.remediation
    if before is not None and before.stage in IN_PROGRESS:
        raise CommandRefusedError(
            f"#{state.number} was already handed to the cluster by {before.requested_by} at "
            f"{at_second(before.requested_at)}; {before.node} is {WORDS[before.stage]}"
        )
    if command.component not in state.cause:
        blamed = ", ".join(sorted(state.cause)) or "no component"
        raise CommandRefusedError(f"#{state.number} blames {blamed}, not {command.component}")
    part = command.component if is_part(command.component) else None
    order = Order(
        request=command.request,
        number=state.number,
        url=command.url,
        node=command.node,
        component=command.component,
        part=part,
        summary=state.verdict or state.title,
        analyzer=state.analyzer,
        reason=command.reason,
        at=now,
    )
    body = {
        "request": command.request,
        "component": command.component,
        "node": command.node,
        "part": part,
        "target": command.target,
        "reason": command.reason,
        "proof_required": command.proof_required,
        **order_as_json(order),
    }
    return [(REQUESTED, body)]


def answer_remediation(state: Incident, command: AnswerRemediation, now: datetime) -> Bodies:
    refuse_merged(state)
    found = _current_request(state, command.request)
    if command.at is not None and command.at > now + SKEW:
        raise CommandRefusedError(f"{command.answer} at {rfc3339(command.at)} is in the future")
    at = min(command.at or now, now)
    if found.last_at - SKEW <= at < found.last_at:
        at = found.last_at
    part = _part(found, command.part)
    replaced = found.part if part is not None else None
    answer = Answer(command.answer, at, command.by, "", command.note, part, replaced)
    if not found.is_news(answer):
        return []
    if part is not None and part == found.part:
        raise CommandRefusedError(
            f"{part} is the part that was to be replaced; send the serial number of the new one"
        )
    return [(ANSWERED, {"request": found.request, "node": found.node, **_without_actor(answer)})]


def _without_actor(answer: Answer) -> dict[str, Any]:
    return {name: value for name, value in answer.as_json().items() if name != "actor"}


def _current_request(state: Incident, request: str) -> Remediation:
    """The remediation that an answer is about: nobody answers what was not asked."""
    found = state.remediation
    if found is None:
        raise CommandRefusedError(f"#{state.number} was not handed to the cluster")
    if found.request != request:
        raise CommandRefusedError(f"#{state.number} has no request {request}; its latest is another one")
    return found


def _part(found: Remediation, given: str | None) -> str | None:
    """The new part as a component: a serial number alone is of the kind of the part before it."""
    if given is None:
        return None
    if "/" in given:
        return check_component("part", given)
    if found.part is None:
        raise InvalidValueError(
            "part", "must be a component such as gpu/1652821001234: the node itself was handed over"
        )
    kind = found.part.partition("/")[0]
    return check_component("part", f"{kind}/{given}")


def judge_repair(state: Incident, command: JudgeRepair) -> Bodies:
    found = state.remediation
    if (
        found is None
        or found.request != command.request
        or not found.is_watched
        or found.proof == command.proof
    ):
        return []
    watched = found.part or f"node/{found.node}"
    return [(JUDGED, {"request": found.request, "component": watched, "proof": dict(command.proof)})]


def proof_waived(state: Incident, reason: str) -> Bodies:
    """The event that a resolution without the demanded proof takes. Raises CommandRefusedError without a reason."""
    found = state.remediation
    if found is None or not found.demands_proof:
        return []
    if not reason:
        raise CommandRefusedError(
            f"#{state.number} requires proof of repair, and {unproved(found)}. Wait for it, or resolve without proof "
            "and give a reason"
        )
    return [
        (WAIVED, {"request": found.request, "node": found.node, "reason": reason, "verdict": found.verdict})
    ]


def unproved(found: Remediation) -> str:
    """Reason why there is no proof yet, as part of a sentence."""
    if found.stage != "returned":
        return f"{found.node} is {WORDS[found.stage]}"
    watched = found.part or found.node
    if found.verdict == "not_repaired":
        return f"{watched} still fails after its return"
    rows = 0 if found.proof is None else found.proof["rows"]
    return (
        f"{watched} has no proof of repair yet ({rows} row{'' if rows == 1 else 's'} seen since its return)"
    )


def left_open(state: Incident) -> str | None:
    """Reason why an incident is open although its part is proved to be repaired, as a sentence; None where it is
    resolved, not proved, or resolved next."""
    found = state.remediation
    if found is None or found.verdict != "repaired" or state.state == "resolved":
        return None
    if state.merged_into is not None:
        return None
    if not found.proof_required:
        return "Still open: no proof was required; resolve it by hand."
    if found.reopened:
        return "Still open: reopened after the proof; resolve it by hand."
    if state.firing:
        return f"Still open: {state.firing} alert{'' if state.firing == 1 else 's'} firing."
    if state.blamed_by:
        since = "" if state.last_blamed is None else f" since {state.last_blamed:%Y-%m-%d %H:%M} UTC"
        return f"Still open: no window without the fault by {', '.join(state.blamed_by)}{since}."
    waiting = [one.number for one in state.merged.values() if one.waits]
    if waiting:
        return f"Still open: #{waiting[0]}, merged into it, waits for a person."
    return None


def refuse_unproved(state: Incident) -> None:
    """An incident that demands proof does not end by being merged."""
    if state.remediation is not None and state.remediation.demands_proof:
        raise CommandRefusedError(
            f"#{state.number} requires proof of repair, and {unproved(state.remediation)}; "
            "merge the other incident into"
            " it"
        )


# Folding
# ----------------------------------------------------------------------------------------------------------
def requested(state: Incident, event: Fact) -> Incident:
    body = event.body
    remediation = Remediation(
        request=body["request"],
        component=body["component"],
        node=body["node"],
        part=body["part"],
        target=body["target"],
        reason=body["reason"],
        requested_at=event.occurred_at,
        requested_by=person(event.actor),
        proof_required=body["proof_required"],
    )
    return replace(state, remediation=remediation)


def answered(state: Incident, event: Fact) -> Incident:
    if (found := state.remediation) is None:
        return state
    given = {name: value for name, value in event.body.items() if name not in ("request", "node")}
    answer = answer_from({**given, "actor": person(event.actor)})
    return replace(state, remediation=found.with_answer(answer))


def judged(state: Incident, event: Fact) -> Incident:
    if (found := state.remediation) is None:
        return state
    return replace(state, remediation=replace(found, proof=event.body["proof"]))


def waived(state: Incident, event: Fact) -> Incident:
    if (found := state.remediation) is None:
        return state
    by = Waived(person(event.actor), event.occurred_at, event.body["reason"])
    return replace(state, remediation=replace(found, waived=by))


def demanded_again(state: Incident) -> Incident:
    """A reopened incident demands its proof again; where the proof is there, a person resolves it."""
    found = state.remediation
    if found is None:
        return state
    reopened = found.reopened or found.verdict == "repaired"
    return replace(state, remediation=replace(found, waived=None, reopened=reopened))


# Sentences
# ----------------------------------------------------------------------------------------------------------
def requested_sentence(name: str, body: Mapping[str, Any]) -> str:
    by = "" if body["target"] is None else f" through webhook {body['target']}"
    return f"{name} handed {body['node']} to the cluster{by}: {body['reason']}"


def answered_sentence(name: str, body: Mapping[str, Any]) -> str:
    phrase = {
        "drained": f"{body['node']} is drained",
        "replaced": _replaced(body),
        "returned": f"{body['node']} returned",
        "refused": f"the cluster refused {body['node']}",
        "failed": f"the cluster gave up {body['node']}",
    }[body["answer"]]
    source = f" (sent by {name})" if name != body["by"] else ""
    note = f": {body['note']}" if body["note"] else ""
    return f"{phrase}, says {body['by']}{source}{note}"


def _replaced(body: Mapping[str, Any]) -> str:
    if body["part"] is None:
        return f"a part of {body['node']} was replaced"
    before = body["replaced"] or f"a part of {body['node']}"
    return f"{before} was replaced with {body['part']}"


def judged_sentence(_: str, body: Mapping[str, Any]) -> str:
    return f"proof of repair, {body['component']}: {body['proof']['summary']}"


def waived_sentence(name: str, body: Mapping[str, Any]) -> str:
    verdict = {"unknown": "not decided yet", "not_repaired": "not repaired"}[body["verdict"]]
    return f"{name} resolved without proof of repair ({verdict}): {body['reason']}"
