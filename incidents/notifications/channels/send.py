"""A message on its way, by whatever kind of address it has. Runs in a thread of its lane and touches no database."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from incidents.domain.notifications.responses import Reply, no_answer, refused, unreadable
from incidents.encryption import Lost
from incidents.notifications.channels.apprise import send_service
from incidents.notifications.channels.email import send_mail
from incidents.notifications.channels.webhook import send_hook
from incidents.notifications.key import UNREADABLE
from incidents.notifications.queue import Outgoing

log = structlog.get_logger("deliver")
_SENDERS: Mapping[str, Callable[[Outgoing], Reply]] = {
    "email": send_mail,
    "webhook": send_hook,
    "apprise": send_service,
}


def send(outgoing: Outgoing) -> Reply:
    if isinstance(outgoing.address, Lost) or isinstance(outgoing.secret, Lost):
        # Another process, or this one after it was given the right key, takes it up again.
        return unreadable(UNREADABLE)
    if not outgoing.address:
        return refused("the method or its address was removed")
    try:
        return _SENDERS[outgoing.kind](outgoing)
    except Exception as error:  # noqa: BLE001  the shell around senders, of which plugins are foreign code
        # Without what it says: that may hold the address.
        log.error("sender failed", lane=outgoing.lane, error=type(error).__name__)
        return no_answer(f"it could not be sent ({type(error).__name__})")
