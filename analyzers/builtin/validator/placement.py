"""What contains each node, as the topology tells."""

from __future__ import annotations

from collections.abc import Mapping

from analyzers.builtin.keys import texts
from analyzers.contract import INVENTORY, Count, Paths, Reduction, Window

PARENTS = Reduction(
    INVENTORY,
    kind="topology",
    group_by=("component", "parents"),
    aggregates={"rows": Count()},
    or_within=True,
)


def parents_of(window: Window) -> Mapping[str, tuple[str, ...]]:
    """The parents of each component; empty without topology."""
    sums = window.sums.get(INVENTORY)
    if sums is None or not sums.rows:
        return {}
    parents = sums.keys["parents"]
    assert isinstance(parents, Paths)
    return {name: parents[row] for row, name in enumerate(texts(sums, "component"))}
