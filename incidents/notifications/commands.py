"""What the rest of Dossier asks of delivery. The caller holds the transaction: what it decides and the notification
are committed together, and `manage.py deliver` does the rest."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from incidents.domain.notifications.delivery import Kind
from incidents.incident.bulk_sql import insert_new
from incidents.notifications.models import Notification
from ingest.queries import Context

Direct = Literal["webhook", "apprise"]


@dataclass(frozen=True, slots=True)
class Call:
    """Have `person` (a login name) told of the incident with the id `incident`, by the rules that they made.

    `key` names this call: with one that was used before nothing happens. `why` is a sentence for the person who is
    called. `urgent` breaks through quiet hours. `when` is the time that delays are counted from. It ends as sent,
    stopped (somebody answered the incident, or `team` has it no more) or given up, each with its events on
    the incident.

    Without a person an address is told at once: `address_ref` is the name of a shared channel, or the address itself,
    of this `kind`. There is no quiet hour for an address.
    """

    incident: str
    key: str
    why: str
    urgent: bool
    context: Context
    when: datetime
    person: str | None = None
    kind: Kind | None = None
    address_ref: str = ""
    team: str = ""


def notify_all(calls: Sequence[Call]) -> None:
    """Have these people and addresses told, with one statement."""
    rows = [
        {
            "id": uuid.uuid4(),
            "key": call.key,
            "person": call.person,
            "kind": call.kind or "",
            "address_ref": call.address_ref,
            "incident": call.incident,
            "team": call.team,
            "why": call.why,
            "urgent": call.urgent,
            "cause": call.context.cause,
            "trace": call.context.trace,
            "made_at": call.when,
            "state": "new",
            "outcome": "",
            "ended_why": "",
        }
        for call in calls
    ]
    insert_new(Notification, rows)


def notify(
    person: str, incident: str, key: str, why: str, urgent: bool, context: Context, when: datetime
) -> None:
    """Have one person told, as `Call` says."""
    notify_all([Call(incident, key, why, urgent, context, when, person=person)])


def notify_address(
    kind: Direct, address_ref: str, incident: str, key: str, why: str, context: Context, when: datetime
) -> None:
    """Have one address told, as `Call` says."""
    notify_all([Call(incident, key, why, True, context, when, kind=kind, address_ref=address_ref)])
