"""Open incidents within a tree of components. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence


def incidents_below(
    causes: Iterable[Sequence[str]], parents: Callable[[str], Sequence[str]]
) -> Mapping[str, int]:
    """By name how many incidents are about it or about what it contains, however deep. `causes` are the components of
    each incident; of several that one contains, an incident counts once. What contains itself ends the way up."""
    found: Counter[str] = Counter()
    ways: dict[str, frozenset[str]] = {}
    for cause in causes:
        reached: set[str] = set()
        for name in cause:
            if name not in ways:
                ways[name] = _upwards(name, parents)
            reached |= ways[name]
        found.update(reached)
    return found


def _upwards(name: str, parents: Callable[[str], Sequence[str]]) -> frozenset[str]:
    """A component and all that contains it."""
    seen, waiting = {name}, [name]
    while waiting:
        for above in parents(waiting.pop()):
            if above not in seen:
                seen.add(above)
                waiting.append(above)
    return frozenset(seen)
