"""Numbers and sentences for people on call."""

from __future__ import annotations


def percent(share: float) -> str:
    """A share as a percentage with two significant digits: `0.021` is `2.1 %`."""
    value = 100 * share
    if value >= 99.95:
        return "100 %"
    if value >= 10:
        return f"{value:.0f} %"
    return f"{value:.2g} %"


def count(number: float) -> str:
    """A count with thousands apart: `12,345`; small expectations keep a digit."""
    if number == int(number) or number >= 100:
        return f"{number:,.0f}"
    return f"{number:.2g}"


def figure(value: float, digits: int = 4) -> str:
    """A measurement with so many significant digits, as a power of ten only if it is tiny: `252,200`, `0.0057`."""
    shown = float(f"{value:.{digits}g}")
    return f"{shown:,.0f}" if abs(shown) >= 1000 else f"{shown:.{digits}g}"


def listed(names: tuple[str, ...], most: int = 3) -> str:
    """`a`, `a or b`, `a, b or c`, `a, b, c or 4 others`."""
    if len(names) > most:
        return f"{', '.join(names[:most])} or {len(names) - most} others"
    if len(names) > 1:
        return f"{', '.join(names[:-1])} or {names[-1]}"
    return names[0] if names else ""
