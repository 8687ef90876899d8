"""Blames services and instances from spans; `analysis` puts it together."""

from analyzers.builtin.trace_blame.analysis import ANALYZER

__all__ = ["ANALYZER"]
