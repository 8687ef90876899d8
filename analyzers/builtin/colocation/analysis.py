"""Do units fail more often when what they depend on is placed farther away? (Zhang et al., NetAI 2018)"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.colocation import evidence
from analyzers.builtin.colocation.assumptions import checked
from analyzers.builtin.colocation.exposure import Exposure, exposure_of
from analyzers.builtin.stats.intervals import microseconds
from analyzers.builtin.stats.rate_ratio import TooFewCountsError, rate_ratio
from analyzers.builtin.uptime.uptimes import FAR, NEAR, uptimes_of
from analyzers.contract import Params, Verdict, Window, quiet

_MOST_STRATA = 1000


def analyze(window: Window, params: Params) -> Verdict:
    edges = strata_edges(window, float(params["stratum_hours"]))
    seen = exposure_of(uptimes_of(window.sums["uptimes"]), edges)
    measures = _measures(seen)
    try:
        found = rate_ratio(seen.strata())
    except TooFewCountsError as error:
        shown = evidence.pieces(seen, None)
        reason = f"{str(error)[0].upper()}{str(error)[1:]}."
        return Verdict("inconclusive", (), reason, measures, shown, checked(seen, None))
    figures = {
        "ratio": found.ratio,
        "low": found.low,
        "high": found.high,
        "differs": found.differs,
        "dispersion": found.dispersion,
        **measures,
    }
    return quiet(figures, evidence.pieces(seen, found), checked(seen, found))


def strata_edges(window: Window, hours: float) -> NDArray[np.int64]:
    """Ends of strata aligned to the epoch, the first and last cut at the window; at most 1,000 strata."""
    start, end = microseconds(window.start), microseconds(window.end)
    length = max(timedelta(hours=hours) // timedelta(microseconds=1), -(-(end - start) // _MOST_STRATA))
    inner = np.arange(start // length + 1, -(-end // length)) * length
    return np.concatenate([[start], inner, [end]]).astype(np.int64)


def _measures(seen: Exposure) -> dict[str, Any]:
    return {
        "near_failures": int(seen.failures[NEAR].sum()),
        "far_failures": int(seen.failures[FAR].sum()),
        "near_unit_days": float(seen.days[NEAR].sum()),
        "far_unit_days": float(seen.days[FAR].sum()),
        "strata": len(seen.edges) - 1,
        "failures_untold": seen.untold,
    }
