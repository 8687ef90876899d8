"""Uptime, downtime by cause and nines of every component; components below target by more than chance.

After the availability figures of Deepview's talk (Zhang et al., NetAI 2018). One account of `uptime` and `outage`
rows by component, kind, cause and label. `builtin/intervals.py` sweeps once over the ends of all intervals:
overlapping reports of an outage count once, everything is clipped to the window, planned work is neither up nor down.

Test of a component (`chances.py`): the probability of outages on so many days, and of so long ones, at the target and,
where it loses twice what is allowed, beside the others. The smallest is multiplied by the number looked at. Named are
components at a share of false ones (Benjamini and Hochberg 1995).

An outage without an end that began more than `open_hours` before the window's end counts with the mean length of the
ended ones (`builtin/open_ends.py`). Time between the first and the last row of a component that no row covers is
unknown: in no figure, up in the test, and it widens the interval downwards.

There is no score: whether a component is at fault for having been down is not a question that these data answer. A
cause that takes several components down names each of them.
"""

from analyzers.builtin.availability.analyzer import ANALYZER

__all__ = ["ANALYZER"]
