"""The assumptions behind the judgement of a class, checked on each window."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analyzers.builtin.paths import texts
from analyzers.builtin.text import percent, so_many
from analyzers.builtin.tor_availability.outages import Outages
from analyzers.contract import Assumption, Sums

_MOST_UNKNOWN = 0.05
"""Share of the devices that were out which the topology may not know."""
_MOST_UNENDED = 0.1
"""Share of the outages whose end may be missing."""
_LOWERED = 1.0
"""Nats that the odds of the class's probability lose for each assumption that does not hold."""


def checked(
    seen: Outages, kind: str, told: int, fleet: Sums | None, scatter: float
) -> tuple[Assumption, ...]:
    """`told` is the number of devices given as a parameter, 0 for none; `scatter` as `Excess` has it."""
    return (_topology(seen, kind, told, fleet), _sampling(seen), _noise(scatter))


def counted(assumptions: Sequence[Assumption]) -> bool:
    """Whether the size of the class is known; otherwise only devices that were out are."""
    return not any(one.name == "topology" and one.detail.startswith(_UNCOUNTED) for one in assumptions)


def lowered(probability: float, assumptions: Sequence[Assumption]) -> float:
    """The probability after what its odds lose to assumptions that do not hold; at most .999."""
    lost = _LOWERED * sum(not one.holds for one in assumptions)
    bounded = min(0.999, probability)
    return bounded if not lost else 1 / (1 + math.exp(lost - math.log(bounded / (1 - bounded))))


_UNCOUNTED = "Only devices that were out are known"


def _topology(seen: Outages, kind: str, told: int, fleet: Sums | None) -> Assumption:
    if told:
        return Assumption(
            "topology", True, f"The class has {so_many(told, 'device')}, as the parameter says."
        )
    if fleet is None:
        return Assumption(
            "topology", False, f"{_UNCOUNTED}: the class is not judged without topology or devices."
        )
    known = {name for name in texts(fleet, "component") if name.startswith(f"{kind}/")}
    out = [name for name, times in zip(seen.devices, seen.count.tolist(), strict=True) if times]
    unknown = sum(name not in known for name in out)
    share = unknown / max(1, len(out))
    return Assumption(
        "topology",
        share <= _MOST_UNKNOWN,
        f"The topology knows {so_many(len(known), 'device')} of the class, not {unknown} of {len(out)} that were out "
        f"({percent(share)}; up to {percent(_MOST_UNKNOWN)} is taken as complete).",
    )


def _sampling(seen: Outages) -> Assumption:
    share = len(seen.unended) / max(1, len(seen.spells))
    return Assumption(
        "sampling",
        share <= _MOST_UNENDED,
        f"The end is missing of {len(seen.unended)} of {so_many(len(seen.spells), 'outage')}; up to "
        f"{percent(_MOST_UNENDED)} is taken as complete.",
    )


def _noise(scatter: float) -> Assumption:
    if scatter <= 0:
        return Assumption(
            "noise", True, "The counts of the devices that do not stand out scatter as chance does."
        )
    return Assumption(
        "noise",
        False,
        f"Rates of outages differ between devices by {percent(math.sqrt(scatter))}: a device must stand out from that.",
    )
