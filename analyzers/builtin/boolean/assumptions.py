"""Assumptions of Boolean tomography, checked on each window, and which answers chance explains.

- `noise`: a path without a faulty component is good. Bad paths that no blamed component explains are counted against
  it. A component is blamed only if its bad paths would not meet on it by chance at that rate (binomial tail, times the
  number of components).
- `sampling`: good paths are recorded as often as bad ones. All methods clear components by their good paths; where only
  failing flows are recorded, hardly any component of a bad path has one.
- `topology`: a path passes the components that it names, and a faulty one fails all of its paths. A component on many
  bad paths that nobody explains, and cleared by a few good ones, speaks against either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import LEAST_PATHS, Bad, Found, Incidence
from analyzers.builtin.stats.probability import at_least
from analyzers.builtin.text import percent
from analyzers.contract import Assumption

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

NOISY = 0.05
"""Share of paths that may be bad without a blamed component."""
CLEARED = 0.5
"""Least share of the components of bad paths that have a good path, too."""
MOSTLY = 0.5
"""Share of a component's paths that is bad, from which its good paths are doubtful."""
CHANCE = 1e-3
"""Expected number of components whose bad paths meet by chance, at which a component is blamed."""


def beyond_chance(seen: Incidence, bad: Bad, found: Sequence[Found]) -> tuple[Found, ...]:
    """Those whose bad paths do not meet by chance, at the rate of bad paths that nobody in `found` explains."""
    rate = _rate(seen, bad, found)
    on, hit = _paths_of(seen, bad)
    p = at_least(hit, on, np.full(len(on), rate))
    return tuple(one for one in found if p[one.component] * seen.components <= CHANCE)


def checked(seen: Incidence, bad: Bad, found: Sequence[Found]) -> tuple[Assumption, ...]:
    """The assumptions of a window with bad paths, in a fixed order."""
    return _noise(seen, bad, found), _sampling(seen, bad), _topology(seen, bad, found)


def undecidable(found: Sequence[Found], assumptions: Sequence[Assumption]) -> str | None:
    """Why neither a component nor nobody can be named, or None: the details of the assumptions that do not hold.

    Without good paths no component is told from another. The others leave what is blamed as it is.
    """
    failed = [one for one in assumptions if not one.holds and (one.name == "sampling" or not found)]
    return " ".join(one.detail for one in failed) or None


def _unexplained(bad: Bad, found: Sequence[Found]) -> Mask:
    """Which bad paths hold none of the components in `found`; shape (bad paths,)."""
    blamed = np.zeros(bad.seen.components, dtype=bool)
    blamed[[one.component for one in found]] = True
    free: Mask = np.bincount(bad.row[blamed[bad.column]], minlength=len(bad.failures)) == 0
    return free


def _rate(seen: Incidence, bad: Bad, found: Sequence[Found]) -> float:
    """Share of bad paths among those without a component in `found`."""
    over = int(seen.containing([one.component for one in found]).sum())
    return int(_unexplained(bad, found).sum()) / max(1, seen.paths - over)


def _paths_of(seen: Incidence, bad: Bad) -> tuple[Floats, Floats]:
    """Paths and bad paths of each component."""
    on = np.bincount(seen.column, minlength=seen.components).astype(np.float64)
    return on, np.round(bad.hit * on)


def _noise(seen: Incidence, bad: Bad, found: Sequence[Found]) -> Assumption:
    left = int(_unexplained(bad, found).sum())
    holds = left < LEAST_PATHS or left <= NOISY * seen.paths
    said = f"{left:,} of {seen.paths:,} paths are bad without a blamed component; up to {percent(NOISY)} is usual."
    return Assumption("noise", holds, said)


def _sampling(seen: Incidence, bad: Bad) -> Assumption:
    on, hit = _paths_of(seen, bad)
    struck = hit > 0
    cleared = int(np.count_nonzero(struck & (hit < on)))
    among = int(np.count_nonzero(struck))
    said = f"{cleared:,} of {among:,} components of bad paths are on a good path, too."
    return Assumption("sampling", cleared >= CLEARED * among, said)


def _topology(seen: Incidence, bad: Bad, found: Sequence[Found]) -> Assumption:
    left = _unexplained(bad, found)
    on, hit = _paths_of(seen, bad)
    open_ = np.bincount(bad.column[left[bad.row]], minlength=seen.components)
    rate = np.full(len(on), max(_rate(seen, bad, found), NOISY))
    doubtful = (open_ >= LEAST_PATHS) & (hit >= MOSTLY * on) & (hit < on)
    doubtful &= at_least(open_.astype(np.float64), on, rate) * seen.components <= CHANCE
    if not doubtful.any():
        return Assumption("topology", True, "No component has mostly bad paths that nobody explains.")
    worst = int(np.lexsort((seen.mark, -open_ * doubtful))[0])
    clear = int(on[worst] - hit[worst])
    said = (
        f"{seen.names[worst]} is on {int(open_[worst]):,} bad paths that no blamed component explains and on {clear:,} "
        "good ones: it fails a part of its paths, or the rows name components that they do not pass."
    )
    return Assumption("topology", False, said)
