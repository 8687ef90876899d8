"""The Deepview analyzer; `analysis` puts it together."""

from analyzers.builtin.deepview.analysis import ANALYZER

__all__ = ["ANALYZER"]
