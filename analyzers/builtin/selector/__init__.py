"""The selector of nodes to validate; `analysis` puts it together."""

from analyzers.builtin.selector.analysis import ANALYZER

__all__ = ["ANALYZER"]
