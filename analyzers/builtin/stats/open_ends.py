"""Outages whose end was never told: still out, or did the word of the end get lost?

Who tells of outages says when one begins and again when it is over. Where the second word is lost, by a crash of
the teller or on the way, the device looks down for weeks. An outage that began a short while before the end is
taken at its word; an older one is believed to have lasted as long as those whose end is known, and what comes
after is not known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.stats.intervals import MINUTE
from analyzers.builtin.stats.nines import OutageMix
from analyzers.contract import STILL_GOING

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

HOUR = 60 * MINUTE


def believed_ends(start: Ints, end: Ints, planned: Bools, high: int, open_hours: float) -> tuple[Ints, Bools]:
    """When each outage is believed to have been over, and which of them are doubted; arrays of shape (outages,).

    All times are microseconds; `high` is the end of what is judged. A doubted outage is believed to have taken the mean
    of the ended ones of its sort, planned or not; where none has ended, what the talk on Deepview at NetAI 2018 says.
    """
    going = end >= STILL_GOING
    doubted = going & (high - start > round(open_hours * HOUR))
    believed = end.copy()
    for sort in (planned, ~planned):
        ended = sort & ~going
        known = (
            float((end[ended] - start[ended]).mean()) if ended.any() else OutageMix().mean_minutes * MINUTE
        )
        mine = doubted & sort
        believed[mine] = np.minimum(start[mine] + round(known), high)
    return believed, doubted
