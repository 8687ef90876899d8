"""Charges: a blamed component with its figures, for all methods.

The score of a suspect is how often a component with that much evidence was at fault in simulations. `SCORES` was made
by `python -m tests.benchmarks.voting --calibrate --share 0.3` (552 windows) on tuning seeds (below
`FIRST_REPORTING_SEED` of the simulator): the network of 007, half of the windows healthy, the others with one to four
faint links of U(1e-4, 2e-3), noise U(0, 1e-6), U(0, 1e-5) and U(0, 1e-4); 120 of the windows with the bar lowered by
4 nats so that doubtful links are seen too, 432 with the usual one. Each pair is the middle of a step of evidence over
the threshold (`charges.over_threshold`), in nats, and the share of entries in that step that held a bad link (made
monotone); between the pairs the log-odds are interpolated. Like every such figure it holds for a world like the
simulated one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from analyzers.builtin.flows.explain import Explained, tail
from analyzers.builtin.flows.observed import Observed
from analyzers.builtin.flows.votes import VoteResult
from analyzers.builtin.stats.probability import probability_at
from analyzers.builtin.voting.analyzer import USUAL_MARGIN
from analyzers.builtin.voting.failures import Outvoting
from analyzers.contract import Estimate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Charge:
    """`lost` packets of `carried` are put down to the component `names[0]` (the others cannot be told from it), where
    `expected` would be lost anyway. `rows` are the failing rows it explains, with `flows` flows of `pairs` pairs of
    hosts. `strength` is evidence in nats, or votes, and `needed` what it had to reach.
    Without an `estimate`, where what the component carried is not known, `expected` are failing flows.
    """

    component: int
    names: tuple[str, ...]
    lost: float
    carried: float
    expected: float
    estimate: Estimate | None
    rows: Ints
    flows: float
    pairs: int
    strength: float
    needed: float
    score: float | None = None
    sure: bool = False
    p_value: float | None = None
    q_value: float | None = None


def rate_interval(lost: float, carried: float) -> Estimate:
    """A loss rate with its 95 % interval, exact for Poisson counts (Garwood 1936)."""
    carried = max(carried, 1.0)
    low = float(gammaincinv(lost, 0.025)) / carried if lost > 0 else 0.0
    high = float(gammaincinv(lost + 1, 0.975)) / carried
    rate = min(1.0, lost / carried)
    return Estimate(rate, min(low, rate), max(rate, min(1.0, high)), "loses {} of what is sent over it")


def from_explanation(
    seen: Observed, found: Explained, margin: float, sure_margin: float
) -> tuple[Charge, ...]:
    """The charges of `explain`; each component's part of a row's losses is that of its rate. The score
    goes by the evidence over the threshold at margin 0, whatever the `margin` was (see `over_threshold`).
    """
    failing = seen.failing
    p_values = [tail(nats) for nats in found.evidence.tolist()]
    q_values = step_up(p_values, seen.components)
    share, charges = _packet_shares(seen, found), []
    alone = found.needed + math.log(max(1, len(found.chosen))) - margin
    surpluses = over_threshold(found.evidence, alone)
    for at, component in enumerate(found.chosen):
        rows = np.flatnonzero(share[:, at] > 0.5)
        lost, carried = float(share[:, at] @ failing.lost), float(seen.carried[component])
        surplus = float(found.evidence[at] - found.needed[at])
        charges.append(
            Charge(
                component,
                names_of(seen, component, found.rival[at]),
                lost,
                carried,
                _expected(seen, found, component),
                rate_interval(lost, carried),
                rows,
                float(failing.flows[rows].sum()),
                len(np.unique(failing.pair[rows])),
                float(found.evidence[at]),
                float(found.needed[at]),
                probability(float(surpluses[at])),
                surplus >= sure_margin,
                p_values[at],
                q_values[at],
            )
        )
    return tuple(charges)


def from_outvoting(seen: Observed, found: Outvoting, margin: float, sure_margin: float) -> tuple[Charge, ...]:
    """The charges where only failing flows name their path; the score goes by the evidence over the threshold at
    margin 0, as for `from_explanation`.
    """
    failing, charges = seen.failing, []
    p_values = [tail(nats) for nats in found.evidence.tolist()]
    q_values = step_up(p_values, seen.components)
    alone = found.needed + math.log(max(1, len(found.chosen))) - margin
    surpluses = over_threshold(found.evidence, alone)
    for at, component in enumerate(found.chosen):
        rows = np.flatnonzero(found.share[:, at] > 0.5)
        charges.append(
            Charge(
                component,
                names_of(seen, component, found.rival[at]),
                float(failing.lost @ found.share[:, at]),
                float(seen.carried[component]),
                float(found.usual[at]),
                None,
                rows,
                float(failing.flows[rows].sum()),
                len(np.unique(failing.pair[rows])),
                float(found.evidence[at]),
                float(found.needed[at]),
                probability_of_outvoting(float(surpluses[at])),
                float(found.evidence[at] - found.needed[at]) >= sure_margin,
                p_values[at],
                q_values[at],
            )
        )
    return tuple(charges)


def over_threshold(evidence: Floats, alone: Floats) -> Floats:
    """Nats of each member above what it would need at margin 0; `alone` is what each needs there with no other, shape
    (members,). Every other one lowers the threshold (the share of false ones is what is bounded), but only those count
    that pass at `USUAL_MARGIN`: where the bar is lowered, doubtful members would else vouch for each other.
    """
    order = np.sort(evidence - alone)[::-1]
    passing = np.flatnonzero(order >= USUAL_MARGIN - np.log(np.arange(1, len(order) + 1)))
    others = passing[-1] + 1 if len(passing) else 1
    return np.asarray(evidence - alone + math.log(others), dtype=np.float64)


def from_votes(seen: Observed, elected: Sequence[VoteResult], needed: float) -> tuple[Charge, ...]:
    """The charges of a vote: all losses of the rows that voted."""
    failing, charges = seen.failing, []
    for one in elected:
        rows = np.array(one.rows, dtype=np.int64)
        lost, carried = float(failing.lost[rows].sum()), float(seen.carried[one.component])
        charges.append(
            Charge(
                one.component,
                names_of(seen, one.component, one.others),
                lost,
                carried,
                0.0,
                rate_interval(lost, carried),
                rows,
                float(failing.flows[rows].sum()),
                len(np.unique(failing.pair[rows])),
                one.votes,
                needed,
            )
        )
    return tuple(charges)


def names_of(seen: Observed, component: int, others: Iterable[int]) -> tuple[str, ...]:
    """The component's name, then those of all that cannot be told from it, sorted."""
    paths = seen.paths
    more = {name for other in others for name in (paths.names[other], *paths.alike[other])}
    return (paths.names[component], *sorted(more | set(paths.alike[component])))


def _packet_shares(seen: Observed, found: Explained, rounds: int = 50) -> Floats:
    """Share of each failing row's packets that each chosen component lost, shape (rows, chosen), when all packets
    count and not only the events that were judged: expectation and maximisation by turns.
    """
    failing, chosen = seen.failing, found.chosen
    member = np.zeros((failing.rows, len(chosen)), dtype=bool)
    for at, component in enumerate(chosen):
        member[found.model.rows_of(component), at] = True
    theta, carried = found.theta.copy(), seen.carried[chosen]
    noise = found.rate[failing.profile]
    share = np.zeros(member.shape)
    for _ in range(rounds):
        parts = member * theta
        share = parts / (parts.sum(axis=1) + noise)[:, None]
        before, theta = theta, failing.lost @ share / np.maximum(carried, 1.0)
        if np.all(np.abs(theta - before) <= 1e-6 * before):
            break
    return share


def _expected(seen: Observed, found: Explained, component: int) -> float:
    """Packets that noise alone would lose on the component's paths."""
    on = seen.paths.containing([component])
    return float(np.sum(seen.paths.attempts[on] * found.rate[seen.profile[on]]))


def step_up(p_values: Sequence[float], tests: int) -> list[float]:
    """Benjamini-Hochberg q-values of the smallest p-values of `tests` tests."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    q_values, running = [0.0] * len(p_values), 1.0
    for rank in range(len(order), 0, -1):
        at = order[rank - 1]
        running = min(running, p_values[at] * tests / rank)
        q_values[at] = running
    return q_values


SCORES: tuple[tuple[float, float], ...] = (
    (-2.5, 0.019),
    (-1.5, 0.113),
    (-0.5, 0.239),
    (0.75, 0.531),
    (2.25, 0.761),
    (4.5, 0.919),
    (9.0, 0.991),
    (18.5, 0.993),
    (25.0, 0.998),
)


def probability(surplus: float) -> float:
    """The probability that an entry is at fault, given its evidence above the threshold in nats."""
    return probability_at(SCORES, surplus)


OUTVOTED: tuple[tuple[float, float], ...] = (
    (-3.0, 0.1),
    (-1.5, 0.3),
    (0.5, 0.45),
    (2.0, 0.72),
    (4.5, 0.88),
    (9.5, 0.92),
    (15.0, 0.955),
    (25.0, 0.98),
    (50.0, 0.995),
)
"""The same where only failing flows name their path: the share of entries that were right in some 400 windows with the
bar lowered by 4 nats, of two generators that share no code (`analyzers.simulators.voting`, 90 windows with 0 to 14 bad
links; all such cases of `tests.worlds.voting`, seeds 100 and 101, among them missing hops, congestion and a busy rack),
made monotone and rounded downwards. Figures are reported of other seeds and of `tests.worlds.voting_drawn`.
"""


def probability_of_outvoting(surplus: float) -> float:
    """The same where only failing flows name their path."""
    return probability_at(OUTVOTED, surplus)
