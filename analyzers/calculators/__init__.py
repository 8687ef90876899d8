"""Calculators: typed-in figures through the same functions as the analyzers of that name. Pure.

A calculator is data and one function, as an analyzer is: its inputs with units and bounds, and what they come to in
words, figures and drawings. Pages and the API show the same answer.
"""

from analyzers.calculators.availability import AVAILABILITY
from analyzers.calculators.colocation import COLOCATION
from analyzers.calculators.form import Answer, Bar, Calculator, Curve, Figure, Range, Rows, answer, read
from analyzers.calculators.tor_availability import TOR_AVAILABILITY

CALCULATORS = {one.slug: one for one in (TOR_AVAILABILITY, COLOCATION, AVAILABILITY)}
"""By the name that their addresses have."""

__all__ = [
    "AVAILABILITY",
    "CALCULATORS",
    "COLOCATION",
    "TOR_AVAILABILITY",
    "Answer",
    "Bar",
    "Calculator",
    "Curve",
    "Figure",
    "Range",
    "Rows",
    "answer",
    "read",
]
