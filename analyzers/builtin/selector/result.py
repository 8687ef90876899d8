"""What the selector found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.selector.trial import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Risk:
    """Each node that is at risk at the end of the window: its name, hours since its last incident (or since it was
    first seen), incidents so far, the probability of one within the horizon, and the hours until it exceeds the target.
    All of shape (nodes,), likeliest first.
    """

    nodes: tuple[str, ...]
    since: Floats
    incidents: NDArray[np.int64]
    chance: Floats
    due: Floats
    strongest: tuple[str | None, ...]
