"""When a node failed: its results are told apart by the rounds that they were taken in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.nodes.outcome import Charge, Failure
from analyzers.builtin.nodes.samples import Stratum
from analyzers.builtin.nodes.similarity import quantiles_of, worse_by
from analyzers.builtin.paths import texts, whole
from analyzers.builtin.stats.intervals import moment
from analyzers.contract import Sums

Span = tuple[datetime, datetime]
Rows = list[int]


def spans(sums: Sums, charges: Sequence[Charge]) -> dict[str, Span]:
    """The first and the last round in which each of the charged was nearer to what it is charged with than to the
    fleet's criteria, so that what was measured after a repair does not make a fault last. All of its rounds where none
    was; a node is left out where the sums do not tell of time.
    """
    if "time" not in sums.keys:
        return {}
    times = whole(sums, "time")
    rows = _rows(sums, charges)
    found = {}
    for charge in charges:
        every = [(one, rows[charge.node, one.judged.stratum]) for one in charge.failures]
        bad = [time for one, mine in every for time in _bad(sums, times, mine, one)]
        among = bad or [int(times[row]) for _, mine in every for row in mine]
        found[charge.node] = moment(min(among)), moment(max(among))
    return found


def _rows(sums: Sums, charges: Sequence[Charge]) -> dict[tuple[str, Stratum], Rows]:
    """Where the samples are that each is charged for."""
    wanted = {(charge.node, *one.judged.stratum) for charge in charges for one in charge.failures}
    keys = zip(*(texts(sums, name) for name in ("node", "benchmark", "metric", "sku")), strict=True)
    found: dict[tuple[str, Stratum], Rows] = defaultdict(list)
    for row, key in enumerate(keys):
        if key in wanted:
            found[key[0], Stratum(*key[1:])].append(row)
    return found


def _bad(sums: Sums, times: NDArray[np.int64], rows: Rows, failure: Failure) -> Iterator[int]:
    """The rounds among these rows in which it failed more than half as much as in all of them."""
    judged, value = failure.judged, np.asarray(sums.keys["value"], dtype=np.float64)[rows]
    order = np.lexsort((value, times[rows]))
    value, at, often = value[order], times[rows][order], np.asarray(sums.values["times"])[rows][order]
    rounds, starts = np.unique(at, return_index=True)
    usual = judged.criteria
    if usual is None:  # a test, which passes or fails
        worse, least = np.maximum.reduceat(np.abs(value), starts), 0.0
    else:
        quantiles, _ = quantiles_of(value, often.astype(np.int64), starts, len(usual.quantiles))
        worse = worse_by(quantiles, usual.quantiles, usual.scale, judged.direction == "higher")
        least = float(judged.worse[failure.at]) / 2
    yield from rounds[worse > least].tolist()
