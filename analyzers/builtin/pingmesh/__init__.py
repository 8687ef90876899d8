"""The pingmesh analyzer; `analysis` puts it together."""

from analyzers.builtin.pingmesh.analysis import ANALYZER

__all__ = ["ANALYZER"]
