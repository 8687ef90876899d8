"""Nodes whose label names another kind of machine than their results do.

A node of a slower kind under a faster kind's label is worse than its like in every metric, and healthy. Its results say
so: wherever the two kinds differ, they are those of the other kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from analyzers.builtin.nodes.outcome import Judged

_DIFFER = 0.02
"""Kinds of machine differ in a metric from this share on, and from `_SPREADS` of what nodes differ by."""
_SPREADS = 4.0
_NEARER = 1 / 3
"""A result is that of the other kind if it is off by less than this part of what lies between the two kinds."""
_MOST = 0.9
"""Share of the metrics in which two kinds differ that have to show the other kind."""


def mislabelled(judged: Sequence[Judged]) -> dict[str, str]:
    """The kind of machine that failing nodes are, where it is another than their label says; by node."""
    kinds: dict[tuple[str, str], dict[str, Judged]] = {}
    for one in judged:
        if one.criteria is not None:
            kinds.setdefault((one.stratum.benchmark, one.stratum.metric), {})[one.stratum.sku] = one
    votes: dict[str, dict[str, list[bool]]] = {}
    failed: dict[str, dict[str, list[bool]]] = {}
    for by_kind in kinds.values():
        for one in by_kind.values():
            failing = {one.nodes[at] for at in np.flatnonzero(one.failing).tolist()}
            for sku, node, like in _likenesses(one, by_kind):
                votes.setdefault(node, {}).setdefault(sku, []).append(like)
                if node in failing:
                    failed.setdefault(node, {}).setdefault(sku, []).append(like)
    found = {}
    for node, by_sku in sorted(failed.items()):
        shares = {sku: np.mean(votes[node][sku]) for sku, told in by_sku.items() if all(told)}
        best = max(sorted(shares), key=lambda sku: shares[sku], default=None)
        if best is not None and shares[best] >= _MOST:
            found[node] = best
    return found


def _likenesses(one: Judged, by_kind: dict[str, Judged]) -> Iterator[tuple[str, str, bool]]:
    """(other kind, node, whether the node's mean is that of the other kind), where the two kinds differ."""
    assert one.criteria is not None
    for sku, other in by_kind.items():
        assert other.criteria is not None
        gap = abs(math.log(one.criteria.scale / other.criteria.scale))
        spread = max(one.criteria.spread, other.criteria.spread)
        if other is one or gap < max(_DIFFER, _SPREADS * spread):
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.abs(np.log(one.means / other.criteria.scale))
        like = off <= max(_NEARER * gap, _SPREADS * other.criteria.spread)
        for node, said in zip(one.nodes, like.tolist(), strict=True):
            yield sku, node, said
