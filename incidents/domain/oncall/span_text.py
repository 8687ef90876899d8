"""How spans of time are written for people, wherever they are read."""

from __future__ import annotations

from datetime import timedelta


def span_words(seconds: float) -> str:
    """`40 s`, `7 min`, `3.5 h`, `2.1 d`."""
    for limit, size, unit in ((90, 1, "s"), (5400, 60, "min"), (129_600, 3600, "h")):
        if seconds < limit:
            shown = seconds / size
            return f"{shown:.0f} {unit}" if unit != "h" else f"{shown:.1f} {unit}"
    return f"{seconds / 86400:.1f} d"


def lead_words(lead: timedelta | float | None) -> str:
    """`12 min before the first report`, `3 min after it`: how long a blame came before or after it."""
    if lead is None:
        return "–"
    seconds = lead.total_seconds() if isinstance(lead, timedelta) else lead
    return f"{span_words(abs(seconds))} {'before the first report' if seconds > 0 else 'after it'}"
