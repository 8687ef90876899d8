"""Uptime, downtime by cause and nines of everything that is reported; `analysis` puts it together."""

from analyzers.builtin.availability.analysis import ANALYZER

__all__ = ["ANALYZER"]
