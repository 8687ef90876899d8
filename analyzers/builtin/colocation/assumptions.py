"""The assumptions behind the ratio of failure rates, checked on each window."""

from __future__ import annotations

from analyzers.builtin.colocation.exposure import Exposure
from analyzers.builtin.stats.rate_ratio import RateRatio
from analyzers.builtin.text import percent
from analyzers.builtin.uptime.uptimes import FAR, NEAR
from analyzers.contract import Assumption

_LEAST_FAILURES = 10
"""Failures of each class from which on the interval of the logarithm is as good as normal."""
_MOST_SCATTER = 2.0
"""Dispersion of the strata from which on failures come in clumps."""
_MOST_UNTOLD = 0.05
"""Share of the failures of units of unknown placement that may be left out."""


def checked(seen: Exposure, found: RateRatio | None) -> tuple[Assumption, ...]:
    near, far = int(seen.failures[NEAR].sum()), int(seen.failures[FAR].sum())
    untold = seen.untold / max(1, seen.untold + near + far)
    out = [
        Assumption(
            "sampling",
            min(near, far) >= _LEAST_FAILURES,
            f"{near:,} near and {far:,} far failures; {_LEAST_FAILURES} of each are needed for the interval to hold.",
        ),
        Assumption(
            "topology",
            untold <= _MOST_UNTOLD,
            f"{percent(untold)} of the failures are of units of unknown placement and left out; up to "
            f"{percent(_MOST_UNTOLD)} is taken as complete.",
        ),
    ]
    if found is not None:
        out.append(
            Assumption(
                "noise",
                found.dispersion < _MOST_SCATTER,
                f"Strata scatter {found.dispersion:.2g} times as much as independent failures would; the interval is "
                "widened for it.",
            )
        )
    return tuple(out)
