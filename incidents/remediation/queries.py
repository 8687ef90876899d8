"""Queries about incidents that were handed to a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from incidents.domain.incident.nodes import NODE_KINDS
from incidents.domain.incident.remediation import REQUESTED
from incidents.domain.incident.state import Incident
from incidents.incident.models import IncidentRow, TimelineEntry
from incidents.incident.projection import state_of
from incidents.webhooks.models import Webhook, WebhookAttempt, WebhookDeadLetter
from ingest.queries import slots_of, topology_snapshot

DEFAULT_REGION = "default"
FURTHEST = 8
"""Steps up the topology in which a node is looked for."""


def node_of(component: str, region: str | None, at: datetime) -> str | None:
    """The name of the node that a component is or is a part of, by its name, the placement and the topology; None where
    none of them says."""
    kind, _, name = component.partition("/")
    if kind in NODE_KINDS:
        return name
    if kind == "slot":
        return name.partition(":")[0] or None
    where = region or DEFAULT_REGION
    for slot in slots_of(component, where, at):
        return slot.partition("/")[2].partition(":")[0]
    return _node_above(component, where, at)


def _node_above(component: str, region: str, at: datetime) -> str | None:
    snapshot = topology_snapshot(region, at)
    layer = [component]
    for _ in range(FURTHEST):
        layer = list(dict.fromkeys(up for one in layer for up in snapshot.parents(one)))
        nodes = sorted(one for one in layer if one.partition("/")[0] in NODE_KINDS)
        if nodes:
            return nodes[0].partition("/")[2]
        slots = sorted(one for one in layer if one.startswith("slot/"))
        if slots:
            return slots[0].partition("/")[2].partition(":")[0]
    return None


def names_of_node(node: str, region: str | None, at: datetime) -> list[str]:
    """The node and all that the topology says is in it, by name."""
    snapshot = topology_snapshot(region or DEFAULT_REGION, at)
    names = [f"{kind}/{node}" for kind in NODE_KINDS]
    found = dict.fromkeys(names)
    layer = names
    while layer:
        layer = [below for one in layer for below in snapshot.contains.get(one, ()) if below not in found]
        found |= dict.fromkeys(layer)
    return list(found)


def handed_over(*, resolved: bool = False) -> list[Incident]:
    """Incidents that were handed to a cluster, the newest first; those of resolved ones only if asked for."""
    rows = IncidentRow.objects.filter(remediation__isnull=False).order_by("-number")
    return [state_of(row) for row in (rows if resolved else rows.exclude(state="resolved"))]


def targets_for(incident: Incident) -> list[str]:
    """Names of the webhooks that carry requests of this incident: active, with the type of the request named among
    their types, and for its team and severity."""
    rows = Webhook.objects.filter(active=True, types__contains=[REQUESTED]).order_by("name")
    return [row.name for row in rows if row.wanted.lets_through(REQUESTED, None, incident)]


DeliveryState = Literal["waiting", "delivered", "failing", "given_up"]


@dataclass(frozen=True, slots=True)
class RequestDelivery:
    """State of the request at its target: `answer` is the answer, or why there was none."""

    state: DeliveryState
    at: datetime | None
    answer: str

    def as_json(self) -> dict[str, Any]:
        return {"state": self.state, "at": self.at, "answer": self.answer}


def delivery_of(incident: Incident) -> RequestDelivery | None:
    """Of the latest request; None where no webhook carries it."""
    found = incident.remediation
    if found is None or found.target is None:
        return None
    about = {"webhook__name": found.target, "type": REQUESTED, "incident": incident.number}
    dead = WebhookDeadLetter.objects.filter(**about, at__gte=found.requested_at).first()
    if dead is not None:
        return RequestDelivery("given_up", dead.at, dead.reason)
    last = (
        WebhookAttempt.objects.filter(**about, at__gte=found.requested_at).order_by("-taken", "-id").first()
    )
    if last is None:
        return RequestDelivery("waiting", None, "")
    return RequestDelivery("delivered" if last.taken else "failing", last.at, last.answer)


def order_of(incident: Incident) -> Mapping[str, Any] | None:
    """Latest request, as it was sent: `kubernetes`, `slurm` and `commands`."""
    entry = _request_entry(incident)
    return None if entry is None else {name: entry.body[name] for name in ("kubernetes", "slurm", "commands")}


def _request_entry(incident: Incident) -> TimelineEntry | None:
    found = incident.remediation
    if found is None:
        return None
    entries = TimelineEntry.objects.filter(incident__pk=incident.id, type=REQUESTED)
    return entries.filter(body__request=found.request).first()


def commands_of(incident: Incident) -> Sequence[Mapping[str, str]]:
    order = order_of(incident)
    return [] if order is None else order["commands"]
