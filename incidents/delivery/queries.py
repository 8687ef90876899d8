"""What the floors above may ask of delivery."""

from incidents.delivery.alive import LONGEST_SILENCE, overdue, silences
from incidents.delivery.lately import Lately, lately
from incidents.delivery.reachability import failed_calls, unreachable

__all__ = [
    "LONGEST_SILENCE",
    "Lately",
    "failed_calls",
    "lately",
    "overdue",
    "silences",
    "unreachable",
]
