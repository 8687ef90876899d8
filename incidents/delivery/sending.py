"""A message on its way, by whatever kind of address it has. Runs in a thread of its lane and touches no database."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from incidents.delivery.claiming import Outgoing
from incidents.delivery.hook import send_hook
from incidents.delivery.mail import send_mail
from incidents.delivery.services import send_service
from incidents.domain.replies import Reply, refused

_SENDERS: Mapping[str, Callable[[Outgoing], Reply]] = {
    "email": send_mail,
    "webhook": send_hook,
    "apprise": send_service,
}


def send(outgoing: Outgoing) -> Reply:
    if not outgoing.address:
        return refused("the method or its address was removed")
    return _SENDERS[outgoing.kind](outgoing)
