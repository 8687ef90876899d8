"""Pingmesh by its published limits alone, for comparison: no test of chance, medians of pods, every ToR's score."""

from __future__ import annotations

import numpy as np

from analyzers.builtin.pingmesh.black_holes import Symptoms
from analyzers.builtin.pingmesh.observed import SLOW_SHARE, Observed, limit_bin, pooled_bins
from analyzers.builtin.pingmesh.patterns import Blocks, classify

MISSING = 0.9


def plain_pattern(seen: Observed) -> tuple[str, tuple[str, ...]]:
    """The pattern by the median P99 of each block of pods (red above 5 ms; a podset is down if 90 % of its cells are
    white), and whom it names.
    """
    where = seen.places
    pods, podsets = len(where.pods), len(where.podsets)
    src, dst = where.pod[seen.src], where.pod[seen.dst]
    bins = pooled_bins(seen, np.where((src >= 0) & (dst >= 0), src * pods + dst, -1), pods * pods)
    total = bins.sum(axis=1).reshape(pods, pods)
    slow = bins[:, limit_bin(5000.0) :].sum(axis=1).reshape(pods, pods)
    share = np.where(total > 0, slow / np.maximum(total, 1), np.nan)
    red, tries = np.zeros((podsets, podsets), bool), np.zeros((podsets, podsets))
    for a in range(podsets):
        for b in range(podsets):
            cells = share[np.ix_(where.podset == a, where.podset == b)]
            there = cells[~np.isnan(cells)]
            tries[a, b] = len(there)
            red[a, b] = len(there) > 0 and float(np.median(there)) > SLOW_SHARE
    for one in range(podsets):
        mine = where.podset == one
        empty = np.concatenate([np.isnan(share[mine]).ravel(), np.isnan(share[:, mine]).ravel()])
        if empty.mean() >= MISSING:
            return "podset_down", (where.podsets[one],)
    chart = Blocks(np.arange(podsets), tries, np.ones_like(tries), np.zeros_like(tries, dtype=np.int64), red)
    found = classify(chart)
    names = (where.spines[0][0],) if found.name == "spine" else tuple(where.podsets[i] for i in found.members)
    return found.name, names


def plain_alerts(seen: Observed) -> int:
    """Pods and servers whose drop rate is above 1e-3 or whose P99 is above 5 ms, by their figures alone."""
    alerts = 0
    for of, size in (
        (seen.places.pod, len(seen.places.pods)),
        (np.arange(len(seen.servers)), len(seen.servers)),
    ):
        members = np.flatnonzero(of >= 0)
        counts = np.zeros((size, 3))
        np.add.at(counts, of[members], seen.quick[members].sum(axis=1))
        above = (counts[:, 2] > 1e-3 * counts[:, 0]) | (counts[:, 1] > SLOW_SHARE * counts[:, 0])
        alerts += int(above.sum())
    return alerts


def plain_black_holes(seen: Observed, found: Symptoms, least_score: float) -> tuple[str, ...]:
    """Every ToR above the score, whoever explains its pairs."""
    return tuple(seen.places.pods[one] for one in np.flatnonzero(found.score >= least_score).tolist())
