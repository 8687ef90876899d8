"""The voting analyzer; `analysis` puts it together."""

from analyzers.builtin.voting.analysis import ANALYZER

__all__ = ["ANALYZER"]
