"""The Boolean baselines as an analyzer; `analysis` puts it together."""

from analyzers.builtin.boolean.analysis import ANALYZER

__all__ = ["ANALYZER"]
