"""The validator of gray nodes; `analysis` puts it together."""

from analyzers.builtin.validator.analysis import ANALYZER

__all__ = ["ANALYZER"]
