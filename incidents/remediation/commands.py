"""Handing incidents to a cluster, and recording its answers. Each function is one transaction.

Raises as `incidents.commands` does. Nothing is executed here: the event is delivered by the webhook that the request
names, or people copy the commands.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import transaction

from incidents.domain.incident.commands import AnswerRemediation, HandToCluster
from incidents.domain.incident.nodes import blamed_nodes
from incidents.domain.incident.remediation import REQUESTED
from incidents.domain.incident.state import Incident
from incidents.domain.remediation.state import DRAINED, AnswerKind, Remediation
from incidents.domain.values import CommandRefusedError, InvalidValueError, check_line
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.incident.repository import (
    CommandResult,
    IncidentNotFoundError,
    keep_reactor_out,
    record,
)
from incidents.people.permissions import allow
from incidents.remediation import maintenance
from incidents.remediation.queries import node_of, targets_for
from ingest.commands import retrying
from ingest.queries import Context, now_utc


def hand_to_cluster(
    incident_id: str,
    reason: str,
    context: Context,
    *,
    component: str | None = None,
    node: str | None = None,
    target: str | None = None,
    proof_required: bool | None = None,
) -> CommandResult:
    """Asks for the node of an incident to be drained and repaired.

    `component`: default the first that the incident blames and that is of a node. `node`: its name, where neither
    placement nor topology says it. `target`: the webhook that carries the request; None: the only one there is, ""
    none. `proof_required`: None as DOSSIER_REPAIR_PROOF_REQUIRED says.
    """
    allow("hand_to_cluster", context, incident_id)
    row = IncidentRow.objects.filter(pk=incident_id).first()
    if row is None:
        raise IncidentNotFoundError(f"no incident {incident_id}")
    state = state_of(row)
    chosen = check_line("component", component) if component else _component(state)
    command = HandToCluster(
        request=str(uuid.uuid4()),
        component=chosen,
        node=_node(chosen, node, state.region),
        target=_target(state, target),
        reason=reason,
        proof_required=settings.REPAIR_PROOF_REQUIRED if proof_required is None else proof_required,
        url=f"{settings.PUBLIC_URL}/incidents/{state.number}",
    )
    return retrying(partial(_record, incident_id, command, context))


def answer(
    incident_id: str,
    request: str,
    answer: AnswerKind,
    by: str,
    context: Context,
    *,
    note: str = "",
    at: datetime | None = None,
    part: str | None = None,
) -> CommandResult:
    """Records what the cluster did; an answer that was recorded before changes nothing.

    While the node is drained a maintenance window suppresses the alerts of the node and of what is in it.
    """
    allow("answer_remediation", context, incident_id)
    command = AnswerRemediation(request, answer, by, note, at, part)
    return retrying(partial(_answer, incident_id, command, context))


@transaction.atomic
def _record(incident_id: str, command: HandToCluster, context: Context) -> CommandResult:
    return record(incident_id, command, context)


@transaction.atomic
def _answer(incident_id: str, command: AnswerRemediation, context: Context) -> CommandResult:
    keep_reactor_out()
    done = record(incident_id, command, context)
    found = done.incident.remediation
    if done.events and found is not None:
        _suppress(done.incident, found, context)
    return done


def _suppress(incident: Incident, found: Remediation, context: Context) -> None:
    now = now_utc()
    if found.stage in DRAINED:
        maintenance.begin(incident.number, found, incident.region, now, context)
    else:
        maintenance.end(incident.number, now, context)


def _component(state: Incident) -> str:
    for name in blamed_nodes(state):
        return name
    blamed = state.component or "no component"
    raise CommandRefusedError(f"#{state.number} blames {blamed}, which is neither a node nor a part of one")


def _node(component: str, given: str | None, region: str | None) -> str:
    known = node_of(component, region, now_utc())
    name = given.strip().removeprefix("node/") if given else None
    if known is not None and name is not None and name != known:
        raise InvalidValueError("node", f"{component} is in {known}, not in {name}")
    if (found := known or name) is None:
        raise InvalidValueError(
            "node",
            f"the node of {component} is unknown: neither placement nor topology contains it; give its name",
        )
    return found


def _target(state: Incident, given: str | None) -> str | None:
    if given == "":
        return None
    known = targets_for(state)
    if given is None:
        if len(known) > 1:
            raise InvalidValueError("target", f"choose one of {', '.join(known)}")
        return known[0] if known else None
    if given not in known:
        listed = ", ".join(known) or "none yet"
        raise InvalidValueError(
            "target",
            f"no active webhook {given[:60]!r} names the type {REQUESTED} for this incident; there is: {listed}",
        )
    return given
