"""Which service explains what changed.

Every place that changed could have been changed by one or two services. A faulty service changes its places
in four groups: its own times, the ways of calls that it answers (`in`), the ways of calls that it makes
(`out`), and what its spans do (`shape`). Within a group each place is changed with a probability that nobody
knows; it is averaged over `SHARES`. So a service gains by every change that it explains and loses by every
place of a changed group that stayed as it was: of the two ends of a slow call the one is blamed whose other
calls are slow, too.
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

GROUPS = ("own", "in", "out", "new", "mix")

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
    GROUPS,
)
"""Groups that a fault touches together, all alike."""


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
    modes = [touched[:, [GROUPS.index(group) for group in mode]].sum(axis=1) for mode in MODES]
    return np.asarray(logsumexp(np.array(modes), axis=0) - np.log(len(MODES)))
