"""Numbers and sentences for people on call."""

from __future__ import annotations

from datetime import datetime

NATS = "One nat of evidence multiplies the odds by 2.7: 5 nats are 150 to 1."
"""The note of tables that show evidence."""
CHANCE = "p: how probable as much is by chance; q: the share of false ones to expect among those with a q as small."
"""The note of tables that show p and q."""


def moment(at: datetime) -> str:
    """`2026-11-21 22:37:05 UTC`: whole, so that whoever shows it can say it by the clock of its reader."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def percent(share: float) -> str:
    """A share as a percentage with two significant digits: `0.021` is `2.1 %`."""
    value = 100 * share
    if value >= 99.95:
        return "100 %"
    if value >= 10:
        return f"{value:.0f} %"
    return f"{value:.2g} %"


def hundredths(share: float) -> float:
    """A share in per cent, for a column whose name ends in `(%)`: three significant digits, `0.0214` is `2.14`."""
    return float(f"{100 * share:.3g}")


def count(number: float) -> str:
    """A count with thousands apart: `12,345`; small expectations keep a digit."""
    if number == int(number) or number >= 100:
        return f"{number:,.0f}"
    return f"{number:.2g}"


def so_many(number: int, noun: str) -> str:
    """`1 component`, `1,200 components`."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


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
