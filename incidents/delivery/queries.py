"""What the floors above may ask of delivery."""

from incidents.delivery.alive import LONGEST_SILENCE, overdue, silences
from incidents.delivery.lately import Lately, lately

__all__ = ["LONGEST_SILENCE", "Lately", "lately", "overdue", "silences"]
