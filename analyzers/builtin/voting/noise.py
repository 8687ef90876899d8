"""What is lost in health: a rate per packet for each path profile, from the paths that no blamed component is on.

007's noise is a rate per link. Rates of link classes cannot be told from one another where every path passes one
link of each class, and names say nothing about classes here; what matters to a component is only how much its
paths lose anyway. So the rate is kept per profile of path. It enters as its upper bound: a rate taken too low
by half costs many false blames, one taken too high costs little.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from analyzers.builtin.voting.observed import Observed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

BOUND = 0.95
"""Level of the one-sided upper bound."""

_ENOUGH = 0.02
"""Share of a profile's packets that must be on clear paths; with less, the rate of all clear paths is taken."""

_ROUNDS = 40


def upper_rate(events: Floats, packets: Floats) -> Floats:
    """The upper bound of a Poisson rate (Garwood 1936)."""
    return np.asarray(gammaincinv(events + 1, BOUND) / np.maximum(packets, 1.0), dtype=np.float64)


def own_rates(seen: Observed) -> Mask:
    """Which profiles may have a rate of their own: those of whose packets no component carries half or more.
    Otherwise that component's losses would pass for what such paths lose in health.
    """
    key = seen.profile[seen.paths.row] * seen.components + seen.paths.column
    used, place = np.unique(key, return_inverse=True)
    through = np.bincount(place.ravel(), seen.paths.attempts[seen.paths.row], minlength=len(used))
    most = np.zeros(seen.profiles)
    np.maximum.at(most, used // max(1, seen.components), through)
    whole = np.bincount(seen.profile, seen.paths.attempts, minlength=seen.profiles)
    return np.asarray(most < 0.5 * whole, dtype=np.bool_)


def background(seen: Observed, own: Mask, clear: Mask, events: Floats, clear_rows: Mask) -> Floats:
    """Lost events per packet for each profile, in health; shape (profiles,).

    `own` says which profiles have a rate of their own (`own_rates`), `clear` marks the paths without a blamed
    component, `clear_rows` such failing rows, and `events` is what each failing row counts. Without any clear
    path the rate is that of all paths.
    """
    packets = np.bincount(seen.profile, seen.paths.attempts * clear, minlength=seen.profiles)
    lost = np.bincount(seen.failing.profile, events * clear_rows, minlength=seen.profiles)
    if not packets.any():
        return np.full(seen.profiles, float(upper_rate(events.sum(), np.asarray(seen.sent))))
    everywhere = upper_rate(lost.sum(), packets.sum())
    whole = np.bincount(seen.profile, seen.paths.attempts, minlength=seen.profiles)
    alone = upper_rate(lost.astype(np.float64), packets.astype(np.float64))
    return np.asarray(np.where(own & (packets >= _ENOUGH * whole), alone, everywhere), dtype=np.float64)


def settled(seen: Observed, own: Mask, clear: Mask, clear_rows: Mask, rate: Floats) -> tuple[Floats, Floats]:
    """Noise and events that fit each other, from a first guess of the noise: what counts depends on what is normal,
    and what is normal on what counts.
    """
    for _ in range(_ROUNDS):
        before, rate = rate, background(seen, own, clear, events_of(seen, rate), clear_rows)
        if np.all(np.abs(rate - before) <= 0.01 * before):
            break
    return rate, events_of(seen, rate)


def events_of(seen: Observed, rate: Floats) -> Floats:
    """What each failing row counts: its lost packets, but not many more than one beyond what noise explains.

    Packets of one flow are lost in bursts, so that ten losses of one flow say little more than one does. Where a
    row sums so many packets that losing some is normal, more of them count.
    """
    expected = seen.failing.sent * rate[seen.failing.profile]
    return np.asarray(np.minimum(seen.failing.lost, 1 + np.floor(expected + 3 * np.sqrt(expected))))
