"""Panorama and gray failures; `analysis` puts it together."""

from analyzers.builtin.panorama.analysis import ANALYZER

__all__ = ["ANALYZER"]
