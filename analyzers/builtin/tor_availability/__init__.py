"""The availability of a device class against what depends on it; `analysis` puts it together."""

from analyzers.builtin.tor_availability.analysis import ANALYZER

__all__ = ["ANALYZER"]
