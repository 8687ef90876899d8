"""Which service explains what changed.

Every place that changed could have been changed by one or two services. A faulty service changes its places in groups:
its own times, the ways of calls that it answers (`in`), the ways of calls that it makes (`out`), what its spans do
(`new`, `mix`), its log records (`log`) and those of the services that call it, directly or not (`told`: a caller logs
what the called did to it, which proves nothing without something at the called itself). Within a group each place is
changed with a probability that nobody knows; it is averaged over `SHARES`. So a service gains by every change that it
explains and loses by every place of a changed group that stayed as it was: of the two ends of a slow call the one is
blamed whose other calls are slow, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from analyzers.builtin.trace_blame.spans import Floats, Ints

SHARES = (0.1, 0.5, 0.9)
"""Probabilities that a fault changes a place of a group it touches, all alike."""

MOST_SUPPORT = 12.0
"""Most that one place can say, in nats: no model of a tail is to be believed further."""

GROUPS = ("own", "in", "out", "new", "mix", "log", "told")

_OWN = ("own", "in", "out", "new", "log")
"""Groups of which one must speak for a service before its callers' logs do, which say at most twice
as much."""

MODES = (
    ("own",),
    ("in",),
    ("out",),
    ("in", "out"),
    ("own", "in"),
    ("own", "out"),
    ("own", "in", "out"),
    ("new",),
    ("mix",),
    ("new", "mix"),
    ("own", "in", "out", "new", "mix"),
)
LOG_MODES = (
    ("log",),
    ("own", "log"),
    ("in", "log"),
    ("new", "log"),
    ("in", "new", "log"),
    ("mix", "log"),
    ("log", "told"),
    ("in", "told"),
    ("new", "told"),
    ("in", "log", "told"),
    ("new", "log", "told"),
    ("own", "in", "out", "told"),
    GROUPS,
)
"""Groups that a fault touches together, all alike; those with logs only where there are any."""


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """Rows: service `service` could have changed a place of group `group` whose log Bayes factor is
    `support`.
    """

    service: Ints
    group: Ints
    support: Floats

    def without(self, service: int) -> Claims:
        kept = self.service != service
        return Claims(self.service[kept], self.group[kept], self.support[kept])


def scores(claims: Claims, services: int) -> Floats:
    """By service the log Bayes factor of "it is faulty" against "nothing is"."""
    key = claims.service * len(GROUPS) + claims.group
    size = services * len(GROUPS)
    support = np.minimum(claims.support, MOST_SUPPORT)
    by_share = np.zeros((len(SHARES), size))
    for row, share in enumerate(SHARES):
        each = np.logaddexp(np.log(share) + support, np.log1p(-share))
        by_share[row] = np.bincount(key, each, minlength=size)
    touched = (logsumexp(by_share, axis=0) - np.log(len(SHARES))).reshape(services, len(GROUPS))
    own, told = [GROUPS.index(group) for group in _OWN], GROUPS.index("told")
    touched[:, told] = np.minimum(touched[:, told], 2 * np.maximum(0.0, touched[:, own].max(axis=1)))
    logged = bool((claims.group >= GROUPS.index("log")).any())
    chosen = (*MODES, *LOG_MODES) if logged else MODES
    modes = [touched[:, [GROUPS.index(group) for group in mode]].sum(axis=1) for mode in chosen]
    return np.asarray(logsumexp(np.array(modes), axis=0) - np.log(len(chosen)))
