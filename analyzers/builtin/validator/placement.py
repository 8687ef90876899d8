"""What contains each node, what it needs and how it is labelled, as the topology tells."""

from __future__ import annotations

import json
from collections.abc import Mapping

from analyzers.builtin.paths import texts
from analyzers.contract import INVENTORY, Paths, Window


def groups_of(window: Window) -> Mapping[str, tuple[str, ...]]:
    """What each component shares with others: parents, what it needs, and labels as `key/value`."""
    found: dict[str, tuple[str, ...]] = dict(parents_of(window))
    needs, labels = window.sums.get("needs"), window.sums.get("labels")
    if needs is not None and needs.rows:
        needed = needs.keys["depends_on"]
        assert isinstance(needed, Paths)
        for row, name in enumerate(texts(needs, "component")):
            found[name] = (*found.get(name, ()), *needed[row])
    if labels is not None and labels.rows:
        for name, told in zip(texts(labels, "component"), texts(labels, "labels"), strict=True):
            pairs = json.loads(told) if told else {}
            found[name] = (*found.get(name, ()), *(f"{key}/{value}" for key, value in sorted(pairs.items())))
    return found


def parents_of(window: Window) -> Mapping[str, tuple[str, ...]]:
    """The parents of each component; empty without topology."""
    sums = window.sums.get(INVENTORY)
    if sums is None or not sums.rows:
        return {}
    parents = sums.keys["parents"]
    assert isinstance(parents, Paths)
    return {name: parents[row] for row, name in enumerate(texts(sums, "component"))}
