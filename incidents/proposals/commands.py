"""Proposing, accepting and declining an action on an incident. Each function is one transaction.

Raises as `incidents.commands` does. Keys and people propose; a person who may carry the action out decides.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import transaction

from incidents.domain.incident.commands import AcceptProposal, DeclineProposal, ProposeAction
from incidents.domain.incident.proposals import open_proposal
from incidents.domain.permissions import ForbiddenError
from incidents.domain.routing.rules import read_matchers
from incidents.domain.suppression.rules import matchers_from
from incidents.domain.values import InvalidValueError, check_line
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.incident.repository import CommandResult, IncidentNotFoundError, record
from incidents.people.permissions import actor_name, allow
from incidents.suppression.silences import create_silence, matchers_in_common, nothing_in_common
from incidents.teams.models import Team
from ingest.commands import retrying
from ingest.queries import Context, now_utc


def propose_hand_over(
    incident_id: str, team: object, reason: Any, context: Context, cites: Sequence[str] = ()
) -> CommandResult:
    allow("comment", context, incident_id)
    slug = check_line("team", team)
    slugs = list(Team.objects.values_list("slug", flat=True))
    if slug not in slugs:
        raise InvalidValueError("team", f"no such team; use {', '.join(slugs)}")
    return _propose(incident_id, ProposeAction(_id(), "hand_over", reason, slug, cites=tuple(cites)), context)


def propose_silence(
    incident_id: str,
    matchers: object,
    minutes: Any,
    reason: Any,
    context: Context,
    cites: Sequence[str] = (),
) -> CommandResult:
    """`matchers`: text, or a list as Alertmanager has it; None: the labels that the firing alerts share."""
    allow("comment", context, incident_id)
    if matchers is None and not (matchers := matchers_in_common(incident_id)):
        raise InvalidValueError("matchers", f"is required: {nothing_in_common(incident_id)}")
    held = matchers_from(read_matchers(matchers) if isinstance(matchers, str) else matchers)
    shown = tuple(one.as_json() for one in held)
    command = ProposeAction(_id(), "silence", reason, None, shown, minutes, tuple(cites))
    return _propose(incident_id, command, context)


def accept(incident_id: str, proposal_id: str, context: Context) -> CommandResult:
    """Carries the action out in the name of the person who accepts."""
    _allow_decision(incident_id, proposal_id, context)
    return retrying(partial(_accept, incident_id, proposal_id, context))


def decline(incident_id: str, proposal_id: str, reason: str, context: Context) -> CommandResult:
    _allow_decision(incident_id, proposal_id, context)
    return retrying(partial(_record, incident_id, DeclineProposal(proposal_id, reason), context))


def _id() -> str:
    return str(uuid.uuid4())


def _propose(incident_id: str, command: ProposeAction, context: Context) -> CommandResult:
    return retrying(partial(_record, incident_id, command, context))


def _allow_decision(incident_id: str, proposal_id: str, context: Context) -> None:
    row = IncidentRow.objects.filter(pk=incident_id).first()
    if row is None:
        raise IncidentNotFoundError(f"no incident {incident_id}")
    if actor_name(context) is None:
        raise ForbiddenError("a key can only propose; sign in to accept or decline")
    allow(open_proposal(state_of(row), proposal_id).action, context, incident_id)


@transaction.atomic
def _record(incident_id: str, command: ProposeAction | DeclineProposal, context: Context) -> CommandResult:
    return record(incident_id, command, context)


@transaction.atomic
def _accept(incident_id: str, proposal_id: str, context: Context) -> CommandResult:
    found = open_proposal(state_of(IncidentRow.objects.select_for_update().get(pk=incident_id)), proposal_id)
    if found.action == "hand_over" and not Team.objects.filter(slug=found.team).exists():
        raise InvalidValueError("team", f"{found.team} was removed; decline the proposal")
    done = record(incident_id, AcceptProposal(proposal_id), context)
    if found.action == "silence" and done.events:
        ends = now_utc() + timedelta(minutes=found.minutes or 0)
        comment = f"#{done.incident.number}: {found.reason} (proposed by {found.by})"
        by = actor_name(context) or context.actor
        create_silence(
            list(found.matchers), None, ends, by, comment[:2_000], context, incidents=(incident_id,)
        )
    return done
