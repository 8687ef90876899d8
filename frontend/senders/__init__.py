"""The endpoints as those who configure senders see them: what to paste, what an answer means, how alerts end.

One entry per page of `frontend/docs/integrate`; the page of integrations shows the same configuration with a new key.
"""

from frontend.senders.alerting import ALERTING
from frontend.senders.form import Sender
from frontend.senders.others import OTHERS

__all__ = ["BY_SLUG", "SENDERS", "Sender"]

SENDERS: tuple[Sender, ...] = (*ALERTING, *OTHERS)
BY_SLUG = {sender.slug: sender for sender in SENDERS}
