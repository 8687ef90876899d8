"""What the floors above may ask of delivery."""

from incidents.delivery.alive import LONGEST_SILENCE, overdue, silences

__all__ = ["LONGEST_SILENCE", "overdue", "silences"]
