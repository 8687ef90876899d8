"""`c4d` on jobs of its second generator, beside rules of a few lines: who is absent, who waits least, what is slow.

python -m tests.benchmarks.worlds_c4d [--trials N] [--first SEED]

The rules are the published ones without guards: 30 s without a completion is a hang of whoever never launched, the rank
that waits least in half of the operations is late, a transfer of twice the usual time is slow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from analyzers.builtin.paths import texts, whole
from analyzers.contract import Window
from tests.benchmarks.script import script
from tests.benchmarks.worlds import Method, report
from tests.worlds.c4d import CASES

FIRST_SEED, TRIALS = 7_000, 6
BARS: Mapping[str, str] = MappingProxyType({f"{case} false blames a window": "<= 0.05" for case in CASES})

Record = tuple[str, int, int, int, int, str, float, float, float]


def records(window: Window) -> list[Record]:
    """Communicator, seq, rank, src, dst, state, start and end (s), bytes of every row."""
    sums = window.sums["states"]
    times = [np.asarray(sums.values[name]) / sums.values["rows"] for name in ("start_ns", "end_ns", "bytes")]
    groups, states = texts(sums, "communicator"), texts(sums, "state")
    numbers = [whole(sums, name).tolist() for name in ("seq", "rank", "src", "dst")]
    started, ended, sizes = (times[0] / 1e9).tolist(), (times[1] / 1e9).tolist(), times[2].tolist()
    return list(zip(groups, *numbers, states, started, ended, sizes, strict=True))


def absent(window: Window) -> list[str]:
    """Ranks without a row in an operation that others have open for 30 s, unless they wait somewhere themselves."""
    found = records(window)
    last = max((end for *_, end, _ in found), default=0.0)
    waits = {one[2] for one in found if one[5] == "started"}
    members: dict[str, set[int]] = defaultdict(set)
    launched: dict[tuple[str, int], set[int]] = defaultdict(set)
    for group, seq, rank, *_ in found:
        members[group].add(rank)
        launched[group, seq].add(rank)
    if window.end.timestamp() - last < 30:
        return []
    stuck = {one[:2] for one in found if one[5] == "started"}
    return [
        f"rank/{rank}" for key in sorted(stuck) for rank in sorted(members[key[0]] - launched[key] - waits)
    ]


def late(window: Window) -> list[str]:
    """Ranks that wait least in half of the operations of a communicator, where others wait a tenth of the time."""
    waits: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for group, seq, rank, source, _, state, start, end, _ in records(window):
        if source < 0 and state == "completed":
            waits[group, seq][rank] = end - start
    least: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for (group, _), of in waits.items():
        if len(of) > 2:
            first = min(of, key=lambda rank: of[rank])
            least[group].append((first, float(np.median(list(of.values()))) - of[first]))
    length, named = (window.end - window.start).total_seconds(), set()
    for found in least.values():
        for rank in {rank for rank, _ in found}:
            mine = [over for one, over in found if one == rank]
            if len(found) >= 8 and len(mine) >= len(found) / 2 and sum(mine) > 0.1 * length:
                named.add(f"rank/{rank}")
    return sorted(named)


def slow(window: Window) -> list[str]:
    """Pairs whose median time a byte is twice that of all pairs; rows and columns of these where most are."""
    took: dict[tuple[int, int], list[float]] = defaultdict(list)
    for _, _, _, source, target, state, start, end, size in records(window):
        if source >= 0 and state == "completed" and size > 0:
            took[source, target].append((end - start) / size)
    delay = {pair: float(np.median(found)) for pair, found in took.items() if len(found) >= 5}
    usual = float(np.median(list(delay.values()))) if delay else 1.0
    hot = {pair for pair, value in delay.items() if value > 2 * usual}
    named = []
    for side, name in ((0, "rank_tx"), (1, "rank_rx")):
        for rank in sorted({pair[side] for pair in hot}):
            mine = {pair for pair in delay if pair[side] == rank}
            if len(mine & hot) >= max(2, 0.6 * len(mine)):
                named.append(f"{name}/{rank}")
                hot -= mine
    return named + [f"channel/{source}~{target}" for source, target in sorted(hot)]


def rules(window: Window) -> list[str]:
    """A hang if there is one, else late ranks and slow transfers."""
    return absent(window) or [*late(window), *slow(window)]


BASELINES: Mapping[str, Method] = MappingProxyType({"three rules": rules})


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    yield from report("c4d", "tests.benchmarks.worlds_c4d:BASELINES", BARS, trials, first)


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
