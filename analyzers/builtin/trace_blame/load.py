"""Effect of load on the times of a service.

A service whose busiest resource is used with a share u takes 1 / (1 - u r) times as long when r times as much is
asked of it (the single queue M/M/1; Kleinrock, "Queueing Systems", 1975). Nobody tells u. Each value in `USED` is as
likely at first, the windows of the history say which of them fit, and what is left open widens what is normal: under
twice the load nobody knows how much slower an unknown service is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from analyzers.builtin.trace_blame.spans import Floats, Ints, Spans

USED = np.arange(0.0, 0.55, 0.1)
"""Shares of use, all as likely at first: servers are mostly used by 10 to 50 % (Barroso and Hoelzle, "The Case for
Energy-Proportional Computing", IEEE Computer 2007)."""

ROUNDS = 2
"""Rounds in which the shares of all services say how likely each share is (empirical Bayes)."""

DOUBTED, DOUBTED_BEYOND = 0.05, 0.25
"""Probability that what the history says of a service's use does not hold, under a load that the history had and under
more: loads are only known by the requests that were sampled, which makes use look less than it is."""

BEYOND = 0.1
"""Excess over the load of any window of the history from which a load is new, in logarithms."""

FULL = 0.9
"""Largest share of use that is reckoned with: beyond it queues are never at rest."""

OWN_LOAD = 0.1
"""Standard deviation of a service's load against that of all, in logarithms."""

FARTHEST = 4.5
"""Most that one window of the history says against a share, in nats: it may have been faulty."""


def loads(spans: Spans) -> Floats:
    """The logarithm of how much more is asked of each service in each window than in the middle window of the history,
    of shape (services, eras): spans a second, those of a service with few drawn towards those of all.
    """
    services, eras = len(spans.services), spans.eras
    first = np.full(eras, np.iinfo(np.int64).max)
    last = np.zeros(eras, dtype=np.int64)
    np.minimum.at(first, spans.era, spans.start)
    np.maximum.at(last, spans.era, spans.start)
    seconds = np.maximum(1.0, (last - np.minimum(first, last)) / 1e6)
    count = np.bincount(spans.service * eras + spans.era, minlength=services * eras).reshape(services, eras)
    together = _against_history(count.sum(axis=0, keepdims=True) / seconds)
    own = _against_history((count + 0.5) / seconds)
    weight = OWN_LOAD**2 / (OWN_LOAD**2 + 1.0 / np.maximum(count, 1))
    return np.asarray(weight * own + (1 - weight) * together)


def _against_history(rate: Floats) -> Floats:
    log = np.log(np.maximum(rate, 1e-9))
    middle = np.median(log[:, :-1], axis=1, keepdims=True) if log.shape[1] > 1 else log
    return np.asarray(log - middle)


def slower(load: Floats) -> Floats:
    """Logarithm of how many times as long things take, by share of use, of shape (shares, *load.shape)."""
    used = USED.reshape(-1, *(1,) * load.ndim)
    return np.asarray(np.log1p(-used) - np.log1p(-np.minimum(FULL, used * np.exp(load))))


@dataclass(frozen=True, slots=True, eq=False)
class Slowing:
    """Effect of load on the logarithm of times in the judged window, and the variance of that, by service; in the
    windows of the history (`past`, of shape (services, eras)); and the log weights of the shares of use, of shape
    (shares, services).
    """

    shift: Floats
    variance: Floats
    past: Floats
    used: Floats


def slowing(
    load: Floats, service: Ints, eras: tuple[Ints, Ints], change: Floats, variance: Floats
) -> Slowing:
    """Effect of load, by the windows of the history under theirs.

    `change` is by how much the mean logarithm of a place rose from one window to a later one (`eras`, both of shape
    (changes,)), `variance` of that without load, `service` whose place it is. Of a fault that begins in the history
    only one change tells.
    """
    services, curve, shares = len(load), slower(load), np.zeros(len(USED))
    apart = change - (curve[:, service, eras[1]] - curve[:, service, eras[0]])
    against = np.minimum(apart**2 / (2 * np.maximum(variance, 1e-9)), FARTHEST)
    fits = -np.stack([np.bincount(service, one, minlength=services) for one in against])
    for _ in range(ROUNDS if services else 0):
        used = fits + shares[:, np.newaxis]
        each = used - logsumexp(used, axis=0)
        shares = logsumexp(each, axis=1) - np.log(services)
    used = fits + shares[:, np.newaxis]
    beyond = load[:, -1] > load[:, :-1].max(axis=1, initial=-np.inf) + BEYOND
    doubted = np.where(beyond, DOUBTED_BEYOND, DOUBTED)
    learnt = np.log1p(-doubted) + used - logsumexp(used, axis=0)
    return slowing_of(load, np.logaddexp(learnt, np.log(doubted / len(USED))))


def slowing_of(load: Floats, used: Floats) -> Slowing:
    """The same by what is known already of each service's share of use."""
    curve, used = slower(load), used - logsumexp(used, axis=0)
    weight = np.exp(used)[:, :, np.newaxis]
    mean = (weight * curve).sum(axis=0)
    spread = (weight * (curve - mean) ** 2).sum(axis=0)
    return Slowing(mean[:, -1], spread[:, -1], mean, used)
