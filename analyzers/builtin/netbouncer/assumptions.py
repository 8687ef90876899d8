"""What NetBouncer takes for granted, checked on each window, and what a probability loses where it does not hold.

- `noise`: paths without a bad component lose probes independently, at a rate that is alike. Paths that lose more than
  noise and the blamed explain (bursts, congestion, components much noisier than others) speak against it.
- `sampling`: every component is crossed by paths that differ. Where only one path crosses it, nothing tells its loss
  from that of the path.
- `topology`: probes pass what they name. Where they do not, paths over a lossy component lose nothing.
"""

from __future__ import annotations

import math

import numpy as np

from analyzers.builtin.netbouncer.refit import CLEAN
from analyzers.builtin.netbouncer.stages import Found
from analyzers.builtin.paths import Incidence
from analyzers.builtin.stats.probability import at_least
from analyzers.builtin.text import percent
from analyzers.contract import Assumption

NOISY = 0.02
"""Share of paths with losses that nothing explains from which noise is not what the method takes it for."""
FEW_PATHS = 0.1
"""Share of components with one path from which the rows are no fair sample."""
TOO_CLEAN = 0.1
"""Share of the blamed components' paths that lose too little from which the named hops are doubtful."""

_LEAST = 3
_SURELY = 1e-4
_LOWERED = {"noise": 1.5, "sampling": 0.5, "topology": 0.7}
"""Nats that the odds of a probability lose where an assumption does not hold."""


def checked(seen: Incidence, found: Found) -> tuple[Assumption, ...]:
    return _noise(seen, found), _sampling(seen), _topology(seen, found)


def undecidable(seen: Incidence, found: Found) -> bool:
    """Whether a path surely loses more than noise that is the only one of a component."""
    crossing = np.bincount(seen.column, minlength=seen.components)
    lonely = np.bincount(seen.row[crossing[seen.column] == 1], minlength=seen.paths) > 0
    return bool(np.any(lonely & (at_least(seen.failures, seen.attempts, found.noise) <= _SURELY)))


def lowered(score: float, assumptions: tuple[Assumption, ...]) -> float:
    """A probability after what it loses to assumptions that do not hold."""
    lost = sum(_LOWERED[one.name] for one in assumptions if not one.holds)
    return 1 / (1 + math.exp(lost - math.log(score / (1 - score)))) if lost else score


def _noise(seen: Incidence, found: Found) -> Assumption:
    struck = int(found.unexplained.sum())
    holds = struck < _LEAST or struck <= NOISY * seen.paths
    said = (
        f"{struck:,} of {seen.paths:,} paths lose more than noise of {percent(found.noise)} and the blamed components "
        f"explain; up to {percent(NOISY)} is usual."
    )
    return Assumption("noise", holds, said)


def _sampling(seen: Incidence) -> Assumption:
    crossing = np.bincount(seen.column, minlength=seen.components)
    single = int(np.count_nonzero(crossing == 1))
    holds = single <= FEW_PATHS * seen.components
    return Assumption(
        "sampling", holds, f"{single:,} of {seen.components:,} components are crossed by one path only."
    )


def _topology(seen: Incidence, found: Found) -> Assumption:
    """Paths over the blamed that lose less than the lower bound of the blamed one's loss makes probable."""
    clean = np.zeros(seen.paths, dtype=bool)
    over = seen.containing([one.component for one in found.blamed])
    for one in found.blamed:
        on = seen.containing([one.component])
        returned = seen.attempts - seen.failures
        clean |= on & (at_least(returned, seen.attempts, np.full(seen.paths, 1 - one.low)) <= CLEAN)
    spared = int(clean.sum())
    holds = spared < _LEAST or spared <= TOO_CLEAN * over.sum()
    said = f"{spared:,} of {int(over.sum()):,} paths over blamed components lose too little for that."
    return Assumption("topology", holds, said if found.blamed else "No component is blamed.")
