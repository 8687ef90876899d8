"""`pingmesh` on worlds of its second generator, beside twenty lines of limits, robust z and a local outlier factor.

python -m tests.benchmarks.worlds_pingmesh [--trials N] [--first SEED]

Dead servers alone (`server_down`, `unplaced`, one of three faults of `several`) are not named, by design: they have no
bar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.pingmesh.observed import Observed, observe
from analyzers.contract import Window
from tests.benchmarks.script import script
from tests.benchmarks.worlds import Method, report
from tests.worlds.pingmesh import CASES

Floats = NDArray[np.float64]

FIRST_SEED, TRIALS = 5_000, 12
_LOUD = (
    *("black_hole", "black_holes", "black_hole_wrong", "black_hole_podset"),
    *("podset_down", "podset_slow", "spine_drops", "spine_slow", "tor_down", "server_slow", "always"),
)
_FAINT = ("podset_drops", "tor_drops", "black_hole_agents")
BARS: Mapping[str, str] = MappingProxyType(
    {
        **{f"{case} {what}": ">= 0.95" for case in _LOUD for what in ("recall", "precision")},
        **{f"{case} recall": ">= 0.7" for case in _FAINT},
        **{f"{case} precision": ">= 0.95" for case in (*_FAINT, "several", "several_agents")},
        **{f"{case} false blames a window": "<= 0.05" for case in CASES},
    }
)


def limits(window: Window) -> list[str]:
    """Each pod and server whose share of lost, dropped and late probes is above 2 %, whatever explains it."""
    seen, names = observe(window, "underlay", 5000.0), []
    for units, of in _units(seen):
        sent, struck = _counted(seen, of, len(units))
        names += [units[one] for one in np.flatnonzero((sent > 0) & (struck > 0.02 * sent)).tolist()]
    return names


def robust_z(window: Window) -> list[str]:
    """Pods and podsets whose share is more than 5 robust deviations above the median of their kind, and 1 %."""
    seen, names = observe(window, "underlay", 5000.0), []
    for units, of in _units(seen):
        share = _shares(seen, of, len(units))
        off = share - float(np.median(share)) if len(share) else share
        width = 1.4826 * float(np.median(np.abs(off))) if len(share) else 0.0
        names += [units[one] for one in np.flatnonzero(off > max(0.01, 5 * width)).tolist()]
    return names


def outlier_factor(window: Window) -> list[str]:
    """Pods and podsets with a local outlier factor above 1.5 (Breunig et al., 2000), and 1 % above the median."""
    from sklearn.neighbors import LocalOutlierFactor

    seen, names = observe(window, "underlay", 5000.0), []
    for units, of in _units(seen):
        share = _shares(seen, of, len(units))
        if len(share) > 3:
            scale = share + 1e-4 * np.arange(len(share)) / len(share)  # equal shares have no density
            found = LocalOutlierFactor(n_neighbors=min(20, len(share) - 1)).fit(scale[:, None])
            odd = (-found.negative_outlier_factor_ > 1.5) & (share - np.median(share) > 0.01)
            names += [units[one] for one in np.flatnonzero(odd).tolist()]
    return names


def _units(seen: Observed) -> Iterator[tuple[tuple[str, ...], NDArray[np.int64]]]:
    """Podsets, pods and servers, each with the unit of every server."""
    yield seen.places.podsets, seen.places.podset_of()
    yield seen.places.pods, seen.places.pod
    yield seen.servers, np.arange(len(seen.servers))


def _counted(seen: Observed, of: NDArray[np.int64], units: int) -> tuple[Floats, Floats]:
    """Probes to and from each unit, and how many of them were lost, dropped or late."""
    sent, struck = np.zeros(units + 1), np.zeros(units + 1)
    for end in (seen.src, seen.dst):
        np.add.at(sent, of[end], seen.sent)
        np.add.at(struck, of[end], seen.lost + seen.slow)
    return sent[:units], struck[:units]


def _shares(seen: Observed, of: NDArray[np.int64], units: int) -> Floats:
    sent, struck = _counted(seen, of, units)
    return struck / np.maximum(sent, 1.0)


BASELINES: Mapping[str, Method] = MappingProxyType(
    {"2 % of the probes": limits, "robust z": robust_z, "local outlier factor": outlier_factor}
)


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    """Rows of every case; `trials` worlds each."""
    return list(rows(trials, first))


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    return report("pingmesh", "tests.benchmarks.worlds_pingmesh:BASELINES", BARS, trials, first)


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
