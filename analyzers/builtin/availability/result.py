"""What a window of uptimes and outages showed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.availability.ledger import Group, Ledger


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The account, and for each component the chance `q` of so much downtime, or on so many days, if it met the target.

    Time of which nothing is known counts as up here: that rows are missing is no sign against anyone.
    """

    ledger: Ledger
    groups: tuple[Group, ...]
    target: float
    target_nines: float
    p: NDArray[np.float64]
    q: NDArray[np.float64]
    named: tuple[int, ...]
    below: int
