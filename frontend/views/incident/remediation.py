"""The way of a node on the page of its incident: the steps, the commands to copy, and the choices of the forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.conf import settings
from django.utils import timezone

from incidents.domain.incident.nodes import blamed_nodes
from incidents.domain.incident.remediation import left_open
from incidents.domain.incident.state import Incident
from incidents.domain.remediation.state import IN_PROGRESS, NEXT, AnswerKind, Remediation
from incidents.people.permissions import refusals
from incidents.remediation.queries import commands_of, delivery_of, node_of, targets_for

StepState = Literal["done", "now", "open", "skipped", "bad"]
DELIVERIES: Mapping[str, str] = {
    "waiting": "waiting to be sent to {}",
    "delivered": "delivered to {}",
    "failing": "{} returned an invalid answer or no answer; retrying",
    "given_up": "could not be delivered to {}",
}
LABELS: Mapping[AnswerKind, str] = {
    "drained": "Drained",
    "replaced": "Part replaced",
    "returned": "Returned to service",
    "refused": "Refused",
    "failed": "Given up",
}


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the way: when it was done and by whom, and what was said of it."""

    name: str
    state: StepState
    at: datetime | None = None
    by: str = ""
    text: str = ""


def remediation_context(state: Incident, name: str | None) -> dict[str, Any]:
    """The context of the page: `way` (None without a hand-over) and, for the person with this name, `cluster`.

    `name` is None on a page of the past, which has no forms. `before` are the steps before the last that was made.
    """
    found = state.remediation
    all_steps = () if found is None else steps(state, found)
    made = max((i for i, one in enumerate(all_steps) if one.state in ("done", "bad")), default=0)
    way = (
        None
        if found is None
        else {
            "before": all_steps[:made],
            "steps": all_steps[made:],
            "commands": commands_of(state),
            "left_open": left_open(state),
        }
    )
    return {"way": way, "cluster": None if name is None else _choices(state, name)}


def _choices(state: Incident, name: str) -> dict[str, Any]:
    """Choices of the forms: `components` with their nodes, where it can be handed over, and the answers that follow."""
    found = state.remediation
    is_free = state.state != "resolved" and (found is None or found.stage not in IN_PROGRESS)
    named = blamed_nodes(state) if is_free else []
    now = timezone.now()
    waits = found is not None and found.demands_proof and state.state != "resolved"
    return {
        "components": [(one, node_of(one, state.region, now)) for one in named],
        "targets": targets_for(state) if named else [],
        "answers": [] if found is None else [(one, LABELS[one]) for one in NEXT[found.stage]],
        "proof_by_default": settings.REPAIR_PROOF_REQUIRED,
        "demands_proof": waits,
        "may_waive": waits and not refusals(name, {"waive_proof"}, state.id),
    }


def steps(state: Incident, found: Remediation) -> Sequence[Step]:
    """Handed over, drained, replaced, returned, proved; a refusal or a failure stands where it happened."""
    answers = {one.answer: one for one in found.answers}
    made = [Step("Handed over", "done", found.requested_at, found.requested_by, _sent(state, found))]
    for what, title in (("drained", "Drained"), ("replaced", "Replaced"), ("returned", "Returned")):
        answer = answers.get(what)  # type: ignore[call-overload]
        if answer is not None:
            text = " ".join(filter(None, (f"{answer.part} is in." if answer.part else "", answer.note)))
            made.append(Step(title, "done", answer.at, answer.by, text))
        elif what == "replaced" and found.stage == "returned":
            made.append(Step(title, "skipped", text="No part was replaced."))
        else:
            made.append(Step(title, "open"))
    if found.stage in ("refused", "failed"):
        last = found.answers[-1]
        made.append(Step(LABELS[last.answer], "bad", last.at, last.by, last.note))
    made.append(_proved(found))
    return _with_present(made)


def _sent(state: Incident, found: Remediation) -> str:
    delivery = delivery_of(state)
    if delivery is None or found.target is None:
        return "By hand, with the commands below."
    text = DELIVERIES[delivery.state].format(found.target)
    return f"{text[:1].upper()}{text[1:]}" + (
        f": {delivery.answer}" if delivery.state in ("failing", "given_up") else "."
    )


def _proved(found: Remediation) -> Step:
    summary = (
        "" if found.proof is None else f"{found.proof['summary'][:1].upper()}{found.proof['summary'][1:]}."
    )
    if found.verdict == "repaired":
        return Step("Proved", "done", None, "", summary)
    if found.verdict == "not_repaired":
        return Step("Not repaired", "bad", None, "", summary)
    demanded = "Required before the incident can be resolved." if found.demands_proof else ""
    return Step("Proved", "open", None, "", " ".join(filter(None, (summary, demanded))))


def _with_present(made: Sequence[Step]) -> Sequence[Step]:
    """The first open step is the one that is waited for."""
    for place, one in enumerate(made):
        if one.state == "open":
            waiting = Step(one.name, "now", one.at, one.by, one.text)
            return [*made[:place], waiting, *made[place + 1 :]]
    return made
