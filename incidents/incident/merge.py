"""Two incidents made one, and taken apart: an event on each, in one transaction.

The reactor is kept out meanwhile, so that no alert or finding is decided on one half of it. Locks are taken in one
order: the reactor, the key, both rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from incidents.domain.incident import commands as c
from incidents.domain.incident.state import Incident
from incidents.domain.values import InvalidValueError
from incidents.incident.models import IncidentRow, MemberAlert
from incidents.incident.repository import (
    CommandResult,
    IncidentNotFoundError,
    keep_reactor_out,
    loaded,
    lock_keys,
    locked_rows,
    record,
    refuse_second,
)
from ingest.queries import Context


@transaction.atomic
def merge(incident_id: str, into: str, reason: str, context: Context) -> CommandResult:
    """Raises InvalidValueError for an incident into itself, CommandRefusedError where one of the two is resolved."""
    if incident_id == into:
        raise InvalidValueError("into", "is this incident itself")
    keep_reactor_out()
    pair = _locked(incident_id, into)
    there = _firing(into)
    alerts = tuple(alert for alert in _firing(incident_id) if alert not in set(there))
    recorded = record(incident_id, c.MergeInto(pair.target, reason), context)
    record(into, c.Absorb(pair.source, alerts, reason), _actor_context(context))
    return recorded


@transaction.atomic
def split(incident_id: str, reason: str, context: Context) -> CommandResult:
    """Raises CommandRefusedError for an incident that is not merged, or whose dedup key another one holds by now."""
    keep_reactor_out()
    row = IncidentRow.objects.filter(pk=incident_id).first()
    if row is None:
        raise IncidentNotFoundError(f"no incident {incident_id}")
    if row.merged_into is None:
        return record(incident_id, c.Split(loaded(row), (), reason), context)
    refuse_second(row)
    into = str(row.merged_into)
    pair = _locked(incident_id, into)
    own = {
        str(alert)
        for alert in MemberAlert.objects.filter(incident__pk=incident_id).values_list("alert", flat=True)
    }
    there = MemberAlert.objects.filter(incident__pk=into, alert__in=own).order_by("alert")
    alerts = tuple(str(one.alert) for one in there)
    # An incident that was resolved meanwhile has settled its alerts: what still fires is sent again.
    resolved = pair.target.state == "resolved"
    firing = () if resolved else tuple(str(one.alert) for one in there if not one.resolved)
    recorded = record(incident_id, c.Split(pair.target, firing, reason), context)
    record(into, c.Separate(pair.source, alerts, firing, reason), _actor_context(context))
    return recorded


@dataclass(frozen=True, slots=True)
class _Pair:
    source: Incident
    target: Incident


def _locked(source: str, target: str) -> _Pair:
    """Both incidents as they stand, held until the transaction ends."""
    pair = IncidentRow.objects.filter(pk__in=[source, target])
    lock_keys(pair.values_list("dedup_key", flat=True))
    found = {id_: loaded(row) for id_, row in locked_rows([source, target]).items()}
    for id_ in (source, target):
        if id_ not in found:
            raise IncidentNotFoundError(f"no incident {id_}")
    return _Pair(found[source], found[target])


def _firing(incident_id: str) -> list[str]:
    rows = MemberAlert.objects.filter(incident__pk=incident_id, resolved=False).order_by("alert")
    return [str(alert) for alert in rows.values_list("alert", flat=True)]


def _actor_context(context: Context) -> Context:
    """Context for the other incident: the version that was seen of one says nothing about the other."""
    return Context(context.actor, context.cause, context.trace)
