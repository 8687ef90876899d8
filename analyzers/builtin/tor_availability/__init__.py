"""Availability of a device class against the requirement of its dependents.

After Zhang et al. (NetAI 2018): a class must have one nine more than what depends on it promises. The interval is
that of Fay and Feuer (1997) for sums of Poisson events; outages within one minute are one event (a power feed, not
forty independent devices). It allows for one outage more, of twice the longest seen, because a rare long outage may
be missing from a short window.

A missed requirement names devices that go out more often than their class (Poisson against the others, 5 % false
discoveries, Benjamini and Hochberg 1995), with the label of the topology that they share, such as a firmware. If
nobody stands out, the class itself is named where its loss is improbable for a class that just meets the requirement.
`sure` needs a repeater at 1 % and an interval below the requirement.

Outages without an end (`builtin/open_ends.py`) count with the mean length of the ended ones; where they decide, the
verdict is inconclusive and lists them. A file of outages knows only devices that were out: send `topology`, or the
class looks worse than it is. Lengths that spread over powers of ten make the interval too narrow.
"""

from analyzers.builtin.tor_availability.analyzer import ANALYZER

__all__ = ["ANALYZER"]
