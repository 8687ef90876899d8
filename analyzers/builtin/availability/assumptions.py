"""The assumptions behind the judgement of components, checked on each window."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.availability.ledger import Ledger
from analyzers.builtin.stats.intervals import MINUTE
from analyzers.builtin.text import percent, so_many
from analyzers.contract import Assumption

_LEAST_OBSERVED = 0.9
"""Share of the time that should be observed."""
_MOST_UNENDED = 0.1
"""Share of the outages whose end may be missing."""
_MOST_TOGETHER = 0.2
"""Share of the components that may be down at once: more share a cause, and outages are not independent."""
_LEAST_COMPARED = 10
"""Outages from which on the lengths of the others say how long one lasts."""


def checked(ledger: Ledger) -> tuple[Assumption, ...]:
    return (_sampling(ledger), _noise(ledger), _independence(ledger))


def _sampling(ledger: Ledger) -> Assumption:
    observed, unknown = float(ledger.observed.sum()), float(ledger.unknown.sum())
    share = observed / max(1e-9, observed + unknown)
    unended = ledger.unended / max(1, len(ledger.spells))
    return Assumption(
        "sampling",
        share >= _LEAST_OBSERVED and unended <= _MOST_UNENDED,
        f"{percent(share)} of the time is observed ({percent(_LEAST_OBSERVED)} needed, the rest counts as up), and the "
        f"end is missing of {ledger.unended} of {so_many(len(ledger.spells), 'outage')}.",
    )


def _noise(ledger: Ledger) -> Assumption:
    outages = len(ledger.spells)
    owners = len(np.unique(ledger.spells.owner))
    return Assumption(
        "noise",
        outages == 0 or (outages >= _LEAST_COMPARED and owners >= 3),
        f"{so_many(outages, 'outage')} of {so_many(owners, 'component')} say how long one lasts; {_LEAST_COMPARED} of "
        "three are needed to compare one with the others.",
    )


def _independence(ledger: Ledger) -> Assumption:
    most = most_at_once(ledger)
    share = most / max(1, len(ledger.components))
    return Assumption(
        "independence",
        most < 3 or share <= _MOST_TOGETHER,
        f"At most {so_many(most, 'component')} of {len(ledger.components):,} went down within one minute "
        f"({percent(share)}; above {percent(_MOST_TOGETHER)} they share a cause).",
    )


def most_at_once(ledger: Ledger) -> int:
    """Most components that went down within one minute."""
    return int(_at_once(ledger).max(initial=0))


def shared(ledger: Ledger) -> NDArray[np.bool_]:
    """Spells that began within a minute with more components than may by chance, shape (spells,)."""
    size = _at_once(ledger)
    return np.asarray((size >= 3) & (size > _MOST_TOGETHER * len(ledger.components)))


def _at_once(ledger: Ledger) -> NDArray[np.int64]:
    """How many spells began in the minute of each, shape (spells,)."""
    _, place, size = np.unique(ledger.spells.start // MINUTE, return_inverse=True, return_counts=True)
    return np.asarray(size[place], dtype=np.int64)
