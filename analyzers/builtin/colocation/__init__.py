"""Failure rates of far against near placement; `analysis` puts it together."""

from analyzers.builtin.colocation.analysis import ANALYZER

__all__ = ["ANALYZER"]
