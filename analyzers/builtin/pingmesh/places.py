"""Which pod, podset and data centre each server is in, and which tier joins the podsets, read off `topology`.

A pod is what contains a server, a podset what contains pods, a data centre what contains podsets. The tier that joins
the podsets (Pingmesh's Spine) is what all of them need (`depends_on`); where topology names nothing of that kind it is
called `spine_tier/` and the name of the data centre.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import texts
from analyzers.contract import Paths, Sums, Window

Ints = NDArray[np.int64]

POD_KINDS = ("tor", "pod", "rack")
"""Where a server has several containers the pod is the one of the first of these kinds that is among them."""

TIER = "spine_tier"


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """`pod` by server, `podset` by pod and `dc` by podset are places in `pods`, `podsets` and `dcs`, or -1."""

    pods: tuple[str, ...]
    podsets: tuple[str, ...]
    dcs: tuple[str, ...]
    pod: Ints
    podset: Ints
    dc: Ints
    spines: tuple[tuple[str, ...], ...]
    """By data centre, and last for podsets in none that is known: what its podsets have in common above them, sorted;
    one name at least.
    """

    def podset_of(self) -> Ints:
        """By server, -1 where unknown."""
        return _through(self.pod, self.podset)

    def dc_of(self) -> Ints:
        """By server, -1 where unknown."""
        return _through(self.podset_of(), self.dc)


def _through(first: Ints, second: Ints) -> Ints:
    return np.where(first >= 0, np.append(second, -1)[first], -1)


def places(window: Window, servers: Sequence[str]) -> Places:
    """The places of `servers`; all unknown where the window has no topology."""
    parents = _sets(window.sums.get("places"), "parents")
    needs = _sets(window.sums.get("needs"), "depends_on")
    pod, pods = _above(servers, parents, POD_KINDS)
    podset, podsets = _above(pods, parents, ())
    dc, dcs = _above(podsets, parents, ())
    called = [*(name.partition("/")[2] for name in dcs), "unnamed"]
    spines = tuple(
        _common(
            [name for name, place in zip(podsets, dc, strict=True) if place == one],
            needs,
            f"{TIER}/{name_of}",
        )
        for one, name_of in zip([*range(len(dcs)), -1], called, strict=True)
    )
    return Places(pods, podsets, dcs, pod, podset, dc, spines)


def _sets(sums: Sums | None, key: str) -> dict[str, tuple[str, ...]]:
    if sums is None:
        return {}
    found = sums.keys[key]
    assert isinstance(found, Paths)
    return {name: found[row] for row, name in enumerate(texts(sums, "component"))}


def _above(
    names: Sequence[str], parents: Mapping[str, tuple[str, ...]], kinds: Sequence[str]
) -> tuple[Ints, tuple[str, ...]]:
    """The container of each name and the containers, sorted. Of several, the one of the first kind of `kinds`; a name
    with two of that kind, or none, is nowhere.
    """
    chosen = [_chosen(parents.get(name, ()), kinds) for name in names]
    above = tuple(sorted({one for one in chosen if one is not None}))
    number = {name: i for i, name in enumerate(above)}
    return np.array([-1 if one is None else number[one] for one in chosen], dtype=np.int64), above


def _chosen(found: tuple[str, ...], kinds: Sequence[str]) -> str | None:
    for kind in kinds if len(found) > 1 else ():
        of_kind = [name for name in found if name.startswith(f"{kind}/")]
        if of_kind:
            return of_kind[0] if len(of_kind) == 1 else None
    return found[0] if len(found) == 1 else None


def _common(podsets: Sequence[str], needs: Mapping[str, tuple[str, ...]], otherwise: str) -> tuple[str, ...]:
    counted = Counter(name for podset in podsets for name in needs.get(podset, ()))
    return tuple(sorted(name for name, times in counted.items() if times == len(podsets))) or (otherwise,)
