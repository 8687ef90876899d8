"""Assumptions of voting, checked on each window, and the discount of a probability where one does not hold.

`noise`: healthy components lose little, and alike. `sampling`: the rows that name a path are a fair sample of the
traffic. 007 as deployed traces a flow only once it has retransmitted. Then every path that is known is one of a
failing flow, what a component carried is not known, and rates say nothing. Two signs tell:

- the rows without a path lose much less than those with one;
- the failing flows lost so few packets each that many other flows over the same components must have lost none, and
  these are not there. A flow of n packets that each get lost with probability q fails with probability
  1 - (1 - q)^n; so each failing one stands for 1 / (1 - (1 - q)^n) flows (Horvitz and Thompson 1952), where q is the
  maximum of the likelihood of losses that are not 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from analyzers.builtin.flows.explain import Explained, lengths, missing_hops
from analyzers.builtin.flows.observed import Observed
from analyzers.builtin.text import count, percent, so_many
from analyzers.builtin.voting.failures import Outvoting
from analyzers.contract import Assumption

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

THERE = 1.0
"""Share of the packets of flows without loss that must be there at least. Their expected number is a lower bound, for
the loss behind it is that of failing flows, at its upper end. On fair samples of tuning seeds 2.6 to 26 times as many
were there, where only failing flows name their path 0 to .5.
"""
THERE_IN_DOUBT, FEW = 2.0, 100
"""The same where most packets are of failing flows, fewer than `FEW`, and paths lose more than those of healthy
networks: losses that come several at once make so few look as if hardly any others were missing (1.1 to 1.7 on tuning
seeds).
"""
RATIO = 5.0
"""Largest ratio of the loss of rows with a path to that of rows without."""

NOISE_SHARES = ((50, 0.6), (200, 0.45))
"""Failing flows that no blamed component explains, and their share, from which uneven traffic alone makes some
component stand out: the more there are, the less it takes. On tuning seeds with more than 200 up to .42 where those
named are bad, from .46 on where they are busy.
"""
HIDING = 200
"""Failing flows that no blamed component explains from which on nobody is named; with fewer, one bad link stands out of
the noise though most failing flows are not its own.
"""
CONTINUOUS, APART = 100, 1.5
"""Failing flows that no blamed component explains from which on nobody is named unless the weakest blamed one has so
many times the failing flows of the busiest unblamed one of its kind. Under congestion the numbers go down without a gap
(1.1 to 1.5 on tuning seeds), beside as much noise bad links stand apart (1.6 to 14).
"""
CROWD = 20
"""Blamed components from which it is more probably uneven traffic that sets them apart."""
LOST = 2e-3
"""Share of packets that paths without a blamed component may lose: healthy networks lose less."""
LOST_BESIDES = 1e-3
"""The same where only failing flows name their path and the others tell how much traffic there is."""
UNEQUAL = 0.8
"""Scale of the tail of what healthy components lose, in standard deviations, up to which they lose alike."""

_LOWERED = {"noise": 1.5, "topology": 1.5, "sampling": 0.0}
_BOTH = 0.5
"""Nats that the odds of a probability lose where an assumption does not hold. Where mostly failing flows name their
path another method judges, with probabilities of its own, whose evidence allows for noise (`_BOTH`)."""
_FAILING = 10
_BUSIEST = 32
_EXPECTED = 10.0
"""Flows without a loss that should be there, from which their absence tells."""
_LITTLE = 0.1
"""Share of packets that failing flows lose at most, as far as one can tell that only such are known."""
DOWN = 0.8
"""Share of the packets lost from which no flow without a loss is to be expected, so that their absence says nothing."""
_MOSTLY = 0.5
"""Share of the packets that failing flows sent, from which much noise is a sign that only such name their path."""


def lowered(score: float, assumptions: Sequence[Assumption]) -> float:
    """A probability after what it loses to assumptions that do not hold."""
    unmet = {one.name for one in assumptions if not one.holds}
    lost = _BOTH if unmet == {"noise", "sampling"} else sum(_LOWERED[one] for one in unmet)
    return 1 / (1 + math.exp(lost - math.log(score / (1 - score)))) if lost else score


def noise_of(seen: Observed, found: Explained) -> Assumption:
    """The assumption `noise`: what is lost without a blamed component is little, and alike on all components. A loss
    above the usual must be more than chance: the lower 95 % bound of the failing flows counts (Garwood 1936).
    """
    clear, clear_rows = ~seen.paths.containing(found.chosen), np.ones(seen.failing.rows, dtype=bool)
    for component in found.chosen:
        clear_rows[found.model.rows_of(component)] = False
    lost, sent = float(seen.paths.failures[clear].sum()), max(float(seen.paths.attempts[clear].sum()), 1.0)
    flows = float(np.count_nonzero(clear_rows))
    surely = lost / sent * float(gammaincinv(flows, 0.05)) / flows if flows else 0.0
    if found.spread > UNEQUAL:
        detail = (
            f"Components without a fault lose unequally: the tail is {found.spread:.1f} standard deviations wide, "
            f"up to {UNEQUAL} is chance."
        )
        return Assumption("noise", False, detail)
    unexplained = float((1 - found.share.sum(axis=1)).sum())
    if found.chosen and _most(unexplained, seen):
        detail = _unexplained_flows(seen, unexplained)
        return Assumption("noise", False, f"{detail} Losses that follow the load set healthy links apart.")
    detail = f"Paths without a blamed component lose {percent(lost / sent)}; up to {percent(LOST)} is usual."
    return Assumption("noise", surely <= LOST, detail)


def topology_of(seen: Observed, found: Explained) -> Assumption:
    """The assumption `topology`: paths name all hops."""
    if missing_hops(seen):
        different, several = lengths(seen)
        detail = (
            f"{different:,} of {several:,} failing flows name fewer hops than others between the same hosts: hops are "
            "missing from paths."
        )
        return Assumption("topology", False, detail)
    if not found.short:
        return Assumption("topology", True, "Long paths lose as short ones over the same components do.")
    detail = (
        f"{so_many(found.short, 'component')} would be blamed, but {'its' if found.short == 1 else 'their'} longest "
        "paths lose much less than the shorter ones: hops are missing from paths."
    )
    return Assumption("topology", False, detail)


def noise_of_failures(seen: Observed, found: Outvoting) -> Assumption:
    """The assumption `noise` where only failing flows name their path: a few components explain a good part of them,
    and little is lost besides.
    """
    if (hidden := unexplained(seen, found)) is not None:
        return Assumption("noise", False, hidden)
    if continuous(found):
        return Assumption(
            "noise",
            False,
            f"{_unexplained_flows(seen, found.unexplained)} The weakest of {so_many(len(found.chosen), 'component')} "
            f"that {'stands' if len(found.chosen) == 1 else 'stand'} out has {found.apart:.1f} times the failing flows "
            f"of the busiest other one; below {APART} the busiest ones stand out under congestion, too.",
        )
    if len(found.chosen) > CROWD:
        return Assumption(
            "noise", False, f"{len(found.chosen)} components stand out, up to {CROWD} are plausible."
        )
    return Assumption("noise", True, _unexplained_flows(seen, found.unexplained))


def unexplained(seen: Observed, found: Outvoting) -> str | None:
    """Losses that no blamed component explains, where they are so many that the busiest components stand out
    whatever they lose; None where they are few.
    """
    if _most(found.unexplained, seen):
        return _unexplained_flows(seen, found.unexplained)
    left = 1 - found.share.sum(axis=1)
    lost = float(left @ seen.failing.lost) / max(seen.sent + seen.sent_without_path, 1.0)
    many = found.unexplained >= NOISE_SHARES[0][0]
    if many and seen.sent_without_path > seen.sent and lost > LOST_BESIDES:
        return (
            f"{percent(lost)} of the packets are lost on failing flows that no blamed component explains; up to "
            f"{percent(LOST_BESIDES)} is usual."
        )
    return None


def hides(seen: Observed, found: Outvoting) -> bool:
    """Whether noise hides who is bad: there is so much of it that those who stand out may be busy and nothing else."""
    return continuous(found) or (found.unexplained >= HIDING and unexplained(seen, found) is not None)


def continuous(found: Outvoting) -> bool:
    """Whether the blamed components are no more than the upper end of what all have: there is no gap below them."""
    return found.unexplained >= CONTINUOUS and found.apart < APART


def _most(unexplained: float, seen: Observed) -> bool:
    """Whether blamed components explain too little of the failing flows."""
    share = unexplained / max(1, seen.failing.rows)
    return any(unexplained >= many and share > most for many, most in NOISE_SHARES)


def _unexplained_flows(seen: Observed, unexplained: float) -> str:
    share = unexplained / max(1, seen.failing.rows)
    return (
        f"{percent(share)} of {count(seen.failing.rows)} failing flows are explained by no blamed component."
    )


def only_failing(seen: Observed, noise: Assumption) -> Assumption | None:
    """The assumption `sampling`, failed, where most packets are of failing flows and paths without a blamed component
    lose more than healthy networks do, unless flows without a loss are there as expected, twice as many beside a
    few failing ones: where flows are long, most packets are of failing ones anyway.
    """
    share = float(seen.failing.sent.sum()) / max(seen.sent, 1.0)
    there, missing = _present(seen)
    known = missing > 0 and (seen.failing.rows >= FEW or there >= THERE_IN_DOUBT)
    if noise.holds or share < _MOSTLY or seen.lost > _LITTLE * seen.sent or known:
        return None
    detail = f"{percent(share)} of the packets with a path are of failing flows. {noise.detail}"
    return Assumption("sampling", False, detail)


def sampling_of(seen: Observed) -> Assumption:
    """The assumption `sampling`: holds unless mostly failing flows name their path."""
    traced, rest = seen.lost / max(seen.sent, 1.0), seen.without_path / max(seen.sent_without_path, 1.0)
    if seen.lost >= _FAILING / 2 and seen.sent_without_path > seen.sent and traced > RATIO * rest:
        return Assumption(
            "sampling",
            False,
            f"Rows that name a path lose {percent(traced)}, the {percent(_share_without(seen))} of the traffic without "
            f"a path lose {percent(rest)}: mostly failing flows name their path.",
        )
    if seen.lost > DOWN * seen.sent:
        return Assumption(
            "sampling",
            False,
            f"{percent(traced)} of the packets with a path are lost: all is down, or only failing flows name their "
            "path.",
        )
    least, missing = _present(seen)
    if least < THERE:
        return Assumption(
            "sampling",
            False,
            f"Flows over the same components without a loss should have sent {count(round(missing))} packets, and "
            f"{percent(least)} of these are there: mostly failing flows name their path.",
        )
    return Assumption("sampling", True, "Flows that lost nothing name their path as often as failing ones.")


def _share_without(seen: Observed) -> float:
    return seen.sent_without_path / max(seen.sent_without_path + seen.sent, 1.0)


def _present(seen: Observed) -> tuple[float, float]:
    """The share of the expected packets without a loss that is there, on the middle one of the busiest components (what
    a single one lost says little of how flows were chosen), and how many these should be; 1 and 0 where too little is
    lost to tell.
    """
    failing = seen.failing
    requested = failing.per_component(np.ones(failing.rows), seen.components)
    busiest = np.argsort(-requested, kind="stable")[:_BUSIEST]
    groups = [(failing.row[failing.column == c], float(seen.carried[c])) for c in busiest.tolist()]
    groups.append((np.arange(failing.rows), seen.sent))
    known: list[tuple[float, float]] = []
    for rows, carried in groups:
        if len(rows) < _FAILING:
            continue
        sent, lost = failing.sent[rows], failing.lost[rows]
        share = _loss(sent, lost)
        failed = -np.expm1(sent * np.log1p(-share))
        if np.sum((1 - failed) / failed) < _EXPECTED:
            continue
        silent = float(np.sum(sent * (1 - failed) / failed))
        known.append((max(0.0, (carried - float(sent.sum())) / silent), silent))
    return sorted(known)[(len(known) - 1) // 2] if known else (1.0, 0.0)


def _loss(sent: Floats, lost: Floats) -> float:
    """The loss of a packet that makes losses of failing flows most probable, at its upper end: expected losses are
    set to those seen and two standard deviations more.
    """
    wanted = float(lost.sum()) + 2 * np.sqrt(float((lost - 1).sum()) + 1)
    low, high = 1e-9, 0.999
    for _ in range(50):
        middle = float(np.sqrt(low * high))
        expected = float(np.sum(sent * middle / -np.expm1(sent * np.log1p(-middle))))
        low, high = (middle, high) if expected < wanted else (low, middle)
    return high
