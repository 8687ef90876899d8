"""Selection of the services to blame: the best explanation first, then what it leaves unexplained.

The score of a suspect is how often one with that much evidence was at fault in simulations. `SCORES` is the one place
where the calibration lives. It was made as by `python -m tests.benchmarks.trace_blame --calibrate --trials 150` on
tuning seeds (500,000 to 500,149, version 3.1.1) of `analyzers.simulators.traces`: windows of a minute, half with a
fault of any type, the margin lowered so that doubtful suspects are seen, too. Each pair is the middle of a step of
evidence in nats and the share of suspects in it that were at fault, made monotone; between the pairs the log-odds are
interpolated. From 4.5 nats on the simulator is easier than other applications (70 of 70 right), so the shares are those
of an earlier version, which recordings and the second generator bear out (80 of 84). It holds for a world with as many
faults as the simulated one: half of all windows; evidence is lowered first where assumptions fail (`analysis.checked`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from analyzers.builtin.stats.probability import probability_at
from analyzers.builtin.trace_blame.likelihood import (
    ObservedWindow,
    Weighed,
    claims_of_instances,
    claims_of_others,
    claims_of_services,
    scores,
    weigh,
)
from analyzers.builtin.trace_blame.places import QUARTERS
from analyzers.builtin.trace_blame.spans import Floats

MOST_SUSPECTS = 5

LATER = 1.0
"""Nats that a fault must say more when only a later part of the window is looked at."""


@dataclass(frozen=True, slots=True)
class Blamed:
    """A service, or one of its instances (None: all alike), with its log posterior odds at the prior of one
    fault among the services; `alike` is another service that the data cannot tell from it.
    """

    service: int
    instance: int | None
    odds: float
    alike: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """The blamed, best first; the log odds of every service; and the part of the window that was judged."""

    blamed: tuple[Blamed, ...]
    odds: Floats
    weighed: Weighed


def decide(seen: ObservedWindow, margin: float, further: float, parts: int = QUARTERS) -> Decision:
    """Blame who leads if the odds exceed `margin`; then, leaving out what is explained already, whoever
    leads with more than `further`: what a fault does elsewhere is odd, too, and has to be told from another.

    A fault may begin inside the window: the window is judged whole and from later quarters on, in `parts` ways.
    """
    best: tuple[float, Weighed] | None = None
    for since in range(parts):
        weighed = weigh(seen, since)
        first = _leading(seen, weighed, ())
        odds = (first.odds if first else -np.inf) - (LATER if since else 0.0)
        if best is None or odds > best[0]:
            best = odds, weighed
    assert best is not None
    weighed, penalty = best[1], LATER if best[1].since else 0.0
    blamed: list[Blamed] = []
    while len(blamed) < MOST_SUSPECTS:
        found = _leading(seen, weighed, [one.service for one in blamed])
        if found is None or found.odds - penalty < (further if blamed else margin):
            break
        blamed.append(found)
    return Decision(tuple(blamed), _odds(seen, weighed, ()), weighed)


def _odds(seen: ObservedWindow, weighed: Weighed, without: Collection[int]) -> Floats:
    count = len(seen.spans.services)
    return np.asarray(scores(claims_of_services(seen, weighed, without), count) - np.log(max(1, count)))


def _leading(seen: ObservedWindow, weighed: Weighed, without: Collection[int]) -> Blamed | None:
    """The service or instance that explains most, or None where there is none left."""
    odds = _odds(seen, weighed, without)
    odds[list(without)] = -np.inf
    if not np.isfinite(odds).any():
        return None
    service = int(np.argmax(odds))
    found = Blamed(service, None, float(odds[service]))
    spans = seen.spans
    now = spans.era == spans.eras - 1
    replicas = np.zeros((len(spans.instances),), dtype=np.int64) - 1
    replicas[spans.instance[now]] = spans.service[now]
    several = np.bincount(replicas[replicas >= 0], minlength=len(spans.services)) >= 2
    several[list(without)] = False
    of = np.flatnonzero((replicas >= 0) & several[np.maximum(replicas, 0)])
    if not len(of):
        return found
    each = scores(claims_of_instances(seen, weighed, of, without), len(spans.instances))[of] - np.log(
        len(of) + len(spans.services)
    )
    lead = int(np.argmax(each))
    instance, owner = int(of[lead]), int(replicas[of[lead]])
    if each[lead] < found.odds and owner != service:
        return found
    one = _one_or_all(seen, weighed, Blamed(owner, instance, float(each[lead])), float(odds[owner]), without)
    return one if one.instance is not None or owner == service else found


def _one_or_all(
    seen: ObservedWindow, weighed: Weighed, one: Blamed, whole: float, without: Collection[int]
) -> Blamed:
    """The instance, if the service's other instances show nothing without it; else the service."""
    assert one.instance is not None
    others = scores(
        claims_of_others(seen, weighed, one.service, one.instance, without), len(seen.spans.services)
    )
    if others[one.service] <= 0.0:
        return Blamed(one.service, one.instance, max(one.odds, whole))
    return Blamed(one.service, None, max(one.odds, whole))


SCORES: tuple[tuple[float, float], ...] = (
    (-0.5, 0.25),
    (0.75, 0.625),
    (4.5, 0.944),
    (9.0, 0.945),
    (18.5, 0.975),
    (25.0, 0.986),
)


def probability(odds: float) -> float:
    """The probability that a suspect with these log odds is at fault; the same for its whole entry."""
    return probability_at(SCORES, odds)
