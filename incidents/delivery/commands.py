"""What the rest of Dossier asks of delivery. The caller holds the transaction: what it decides and the notification
are committed together, and `manage.py deliver` does the rest."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from incidents.delivery.models import Notification
from ingest.queries import Context

Direct = Literal["webhook", "apprise"]


def notify(
    person: str, incident: str, key: str, why: str, urgent: bool, context: Context, when: datetime
) -> None:
    """Have `person` (a login name) told of the ticket with the id `incident`, by the rules that they made.

    `key` names this call: with one that was used before nothing happens. `why` is a sentence for the person who is
    called. `urgent` breaks through quiet hours. `when` is the time that delays are counted from. It ends as sent,
    stopped (somebody answered the ticket after `when`) or given up, each with its events on the ticket.
    """
    _keep(Notification(person=person), incident, key, why, urgent, context, when)


def notify_address(
    kind: Direct, address_ref: str, incident: str, key: str, why: str, context: Context, when: datetime
) -> None:
    """Have an address told at once. `address_ref` is the name of a shared channel, or the address itself.

    There is no quiet hour for an address. Otherwise as `notify`.
    """
    direct = Notification(kind=kind, address_ref=address_ref)
    _keep(direct, incident, key, why, True, context, when)


def _keep(
    row: Notification, incident: str, key: str, why: str, urgent: bool, context: Context, when: datetime
) -> None:
    row.incident, row.key, row.why, row.urgent = incident, key, why, urgent
    row.cause, row.trace, row.made_at = context.cause, context.trace, when
    Notification.objects.bulk_create([row], ignore_conflicts=True)
