"""Behaviour patterns of the workers of each role, as tables, from the sums of `function_profile` rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import numbered, texts
from analyzers.contract import Paths, Sums, Window

Floats = NDArray[np.float64]

BETA, MU, SIGMA = 0, 1, 2
COMPONENTS = ("beta", "mu", "sigma")
INDICATORS = ("share of the critical path", "use", "spread of use")
"""Names of the components in verdicts."""


@dataclass(frozen=True, slots=True, eq=False)
class Role:
    """Workers of one role of one job. `values` has shape (3, functions, workers), NaN where a worker did not run a
    function; `classes` are those of the functions.
    """

    job: str
    role: str
    workers: tuple[str, ...]
    functions: tuple[str, ...]
    classes: tuple[str, ...]
    values: Floats

    @property
    def shown(self) -> str:
        return f"{self.role} of {self.job}"

    def medians(self) -> Floats:
        """Shape (3, functions)."""
        return np.asarray(np.nanmedian(self.values, axis=2))


def roles(sums: Sums) -> tuple[Role, ...]:
    """Every role of every job, in the order of their names."""
    if not sums.rows:
        return ()
    keys = {name: numbered(texts(sums, name)) for name in ("job", "role", "worker", "function", "cls")}
    rows = np.asarray(sums.values["rows"], dtype=np.float64)
    means = np.stack([np.asarray(sums.values[name], dtype=np.float64) / rows for name in COMPONENTS])
    group = keys["job"][1] * len(keys["role"][0]) + keys["role"][1]
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    found = []
    for mine in np.split(order, starts[1:]):
        at = int(mine[0])
        named = (keys["job"][0][int(keys["job"][1][at])], keys["role"][0][int(keys["role"][1][at])])
        workers, worker = np.unique(keys["worker"][1][mine], return_inverse=True)
        both = keys["function"][1][mine] * len(keys["cls"][0]) + keys["cls"][1][mine]
        functions, function = np.unique(both, return_inverse=True)
        values = np.full((3, len(functions), len(workers)), np.nan)
        values[:, function, worker] = means[:, mine]
        found.append(
            Role(
                *named,
                tuple(keys["worker"][0][one] for one in workers.tolist()),
                tuple(keys["function"][0][one // len(keys["cls"][0])] for one in functions.tolist()),
                tuple(keys["cls"][0][one % len(keys["cls"][0])] for one in functions.tolist()),
                values,
            )
        )
    return tuple(found)


def nodes(window: Window) -> dict[str, str]:
    """The node of each worker that the topology places on one; of several parents the first that is called a node."""
    if (sums := window.sums.get("places")) is None:
        return {}
    parents = sums.keys["parents"]
    if not isinstance(parents, Paths):
        raise TypeError("key parents holds no components")
    found: dict[str, str] = {}
    for row, component in enumerate(texts(sums, "component")):
        named = [one for one in parents[row] if one.startswith(("node/", "host/"))]
        if named:
            found[component] = min(named, key=lambda one: (one.startswith("host/"), one))
    return found
