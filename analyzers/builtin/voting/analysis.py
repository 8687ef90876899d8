"""Voting localisation: the component that flows with lost packets have in common, and the verdict of every method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.flows.explain import SHORTLIST, Explained, Rules, explain
from analyzers.builtin.flows.observed import Observed, observe
from analyzers.builtin.flows.votes import VoteResult, blamed_by_flow, discounted, majority, votes_of
from analyzers.builtin.paths import simpler_methods
from analyzers.builtin.text import count, listed, percent
from analyzers.builtin.voting import evidence as show
from analyzers.builtin.voting.assumptions import (
    CROWD,
    hides,
    lowered,
    noise_of,
    noise_of_failures,
    only_failing,
    sampling_of,
    topology_of,
)
from analyzers.builtin.voting.charges import Charge, from_explanation, from_outvoting, from_votes
from analyzers.builtin.voting.evidence import Cleared
from analyzers.builtin.voting.failures import Outvoting, outvote
from analyzers.contract import (
    Assumption,
    Evidence,
    Params,
    Suspect,
    Verdict,
    Window,
    inconclusive,
    quiet,
    text,
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


_RUNNERS = 8


def analyze(window: Window, params: Params) -> Verdict:
    seen = observe(window, str(params["layer"]))
    measures = _measures(seen)
    reason = _nothing_to_judge(seen, window)
    if reason is not None:
        return inconclusive(reason, measures)
    sampling = sampling_of(seen)
    if params["method"] != "explain":
        return verdict_of(window, seen, _voted(seen, params), measures, (sampling,))
    if not sampling.holds:
        return _by_failures(window, seen, params, measures, sampling)
    rules = _rules(params)
    found = explain(seen, rules)
    noise = noise_of(seen, found)
    if (biased := only_failing(seen, noise)) is not None:
        return _by_failures(window, seen, params, measures, biased)
    assumptions = (sampling, noise, topology_of(seen, found))
    return verdict_of(window, seen, _explained(seen, found, rules, params), measures, assumptions)


def _rules(params: Params) -> Rules:
    return Rules(
        float(params["margin"]),
        float(params["min_loss"]),
        int(params["min_flows"]),
        complete=False,
        unequal=True,
    )


def _measures(seen: Observed) -> dict[str, Any]:
    return {
        "paths": seen.paths.paths,
        "components": len(seen.paths.number()),
        "sent": int(seen.sent),
        "lost": int(seen.lost),
        "failing_flows": int(seen.failing.flows.sum()),
        "lost_without_path": int(seen.without_path),
    }


def _nothing_to_judge(seen: Observed, window: Window) -> str | None:
    """Reason why the window cannot be judged at all, or None."""
    where = "hops" if window.input == "probe" else "components"
    if seen.sent <= 0:
        return f"No probe of this window names its path (`{where}`): paths cannot be compared."
    if seen.without_path > seen.lost and seen.without_path >= 10:
        return (
            f"{count(seen.without_path)} of {count(seen.without_path + seen.lost)} losses are of rows that do not say "
            f"what they passed (`{where}`)."
        )
    if seen.components == 1 and seen.failing.rows:
        return "All paths hold the same components: paths cannot be compared."
    return None


def _explained(seen: Observed, found: Explained, rules: Rules, params: Params) -> VotingResult:
    charges = from_explanation(seen, found, rules.margin, float(params["sure_margin"]))
    return VotingResult(
        charges, _cleared(seen, found, rules), by_flow(found.share), "evidence (nats)", _account(seen, found)
    )


def _by_failures(
    window: Window, seen: Observed, params: Params, measures: dict[str, Any], sampling: Assumption
) -> Verdict:
    """The verdict where only failing flows name their path."""
    rules = _rules(params)
    found = outvote(seen, rules)
    assumptions = (sampling, noise_of_failures(seen, found))
    result = _outvoted_by_failures(seen, found, rules, params)
    if hides(seen, found):
        result = replace(result, charges=(), by_flow=np.full(seen.failing.rows, -1, dtype=np.int64))
    return verdict_of(window, seen, result, measures, assumptions)


def _outvoted_by_failures(seen: Observed, found: Outvoting, rules: Rules, params: Params) -> VotingResult:
    charges = from_outvoting(seen, found, rules.margin, float(params["sure_margin"]))
    blamed = {c for at, one in enumerate(found.chosen) for c in (one, *found.rival[at])}
    order = np.lexsort((seen.paths.mark, -found.alone)).tolist()
    runners = [c for c in order if c not in blamed and found.alone[c] >= 1.0][:_RUNNERS]
    cleared = tuple(
        Cleared(
            c,
            seen.paths.names[c],
            float(found.alone[c]),
            float(found.left[c]),
            f"evidence of {found.left[c]:.1f} where {found.threshold[c]:.1f} is needed",
        )
        for c in runners
    )
    account = (
        "Only failing flows name their path, so that what a component carried is not known. A component is blamed "
        "when the failing flows of more pairs of hosts pass it than those of its peers, as far as other blamed ones do "
        "not explain them. How many usually pass one is learnt from the flows that no blamed component explains; "
        "traffic and usual losses may each be uneven by 70 %. Loss rates are not known. The setting is that of 007 as "
        "deployed (Arzani et al., NSDI 2018)."
    )
    return VotingResult(charges, cleared, by_flow(found.share), "evidence (nats)", account)


def by_flow(share: Floats) -> Ints:
    """For each failing row the chosen component (by its place) that most probably lost its packets, -1 if none has a
    half of the probability; `share` of shape (rows, chosen).
    """
    if not share.shape[1]:
        return np.full(len(share), -1, dtype=np.int64)
    best = share.argmax(axis=1)
    likely = share[np.arange(len(best)), best]
    return np.where(share.sum(axis=1) >= 0.5, np.where(likely > 0, best, -1), -1).astype(np.int64)


def _cleared(seen: Observed, found: Explained, rules: Rules) -> tuple[Cleared, ...]:
    """The components that looked worst on their own and are not blamed."""
    if not seen.failing.rows:
        return ()
    model = found.model
    alone = model.eta(found.rate, [], np.zeros(0))
    beside = model.eta(found.rate, found.chosen, found.theta)
    listed = model.shortlist(alone, SHORTLIST)
    rivals = {other for one in found.rival for other in one}
    first, left = model.steps(alone, listed), model.steps(beside, listed)
    order = np.lexsort((seen.paths.mark[listed], -first.gain))
    cleared = []
    for at in order.tolist():
        component = int(listed[at])
        if component in found.chosen or component in rivals or first.gain[at] < 1.0:
            continue
        gain, rate, needed = float(left.gain[at]), float(left.theta[at]), float(found.threshold[component])
        reason = _reason(seen, found, component, gain, rate, needed, rules)
        cleared.append(Cleared(component, seen.paths.names[component], float(first.gain[at]), gain, reason))
        if len(cleared) == _RUNNERS:
            break
    return tuple(cleared)


def _reason(
    seen: Observed, found: Explained, component: int, left: float, rate: float, needed: float, rules: Rules
) -> str:
    rows = found.model.rows_of(component)
    lost = seen.failing.lost[rows]
    if found.chosen and left < needed:
        taken = found.share[rows].T @ lost
        worst = int(np.argmax(taken))
        if taken[worst] >= 0.5 * lost.sum():
            blamed = seen.paths.names[found.chosen[worst]]
            return f"{taken[worst]:.0f} of its {lost.sum():.0f} losses are those of {blamed}"
    if left < needed:
        return f"evidence of {left:.1f} where {needed:.1f} is needed"
    if rate < rules.min_loss:
        return f"own loss rate is below {percent(rules.min_loss)}"
    return f"its losses are those of fewer than {rules.min_flows} pairs"


def _account(seen: Observed, found: Explained) -> str:
    noise = float(np.average(found.rate, weights=np.bincount(seen.profile, seen.paths.attempts)))
    low, high = f"{found.threshold.min():.1f}", f"{found.threshold.max():.1f}"
    needed = low if low == high else f"{low} to {high}, by kind,"
    return (
        f"Noise: on paths without a blamed component {noise:.1e} of the packets are lost (upper bound), estimated "
        "apart for paths of different make. A component is blamed when a loss rate of its own explains what noise "
        f"and the other blamed ones cannot; one more would need {needed} nats of evidence, less the more are "
        "blamed, so that the share of false ones stays the same. What is judged are events: a flow that loses ten "
        "packets in a burst speaks little louder than one that loses one. Method: greedy explanation "
        "by maximum likelihood over paths. The setting is that of 007 (Arzani et al., NSDI 2018)."
    )


def _voted(seen: Observed, params: Params) -> VotingResult:
    least, votes = int(params["min_flows"]), votes_of(seen)
    if params["method"] == "007":
        elected = discounted(seen, float(params["vote_share"]), least)
        needed = float(params["vote_share"]) * float(votes.sum())
        account = (
            "Every failing flow gave each of the h components on its path 1/h of a vote; the one with most votes was "
            f"blamed, its flows were taken away, and so on while the best had {percent(float(params['vote_share']))} "
            f"of the votes left and the losses of {least} pairs. Method: 007 (Arzani et al., NSDI 2018)."
        )
        flows = _flows_of(blamed_by_flow(seen, votes), elected)
    else:
        elected = majority(seen, least)
        votes = seen.failing.per_component(seen.failing.flows, seen.components)
        needed = float(least)
        account = (
            "Every failing flow voted for each component on its path, and the component with most votes is blamed. "
            "Method: plain majority, as in the underlay step of SkeletonHunter. It always names the most shared "
            "component, and at most one entry."
        )
        flows = np.full(seen.failing.rows, -1, dtype=np.int64)
        for at, one in enumerate(elected):
            flows[list(one.rows)] = at
    return VotingResult(
        from_votes(seen, elected, needed), _outvoted(seen, elected, votes), flows, "votes", account
    )


def _flows_of(component: Ints, elected: tuple[VoteResult, ...]) -> Ints:
    """The place in `elected` of each row's component, -1 for others."""
    place = {one.component: at for at, one in enumerate(elected)}
    return np.array([place.get(c, -1) for c in component.tolist()], dtype=np.int64)


def _outvoted(seen: Observed, elected: tuple[VoteResult, ...], votes: Floats) -> tuple[Cleared, ...]:
    failing = seen.failing
    left = np.ones(failing.rows)
    for one in elected:
        left[list(one.rows)] = 0.0
    remaining = failing.per_component(left * failing.flows / np.maximum(failing.hops, 1), seen.components)
    blamed = {c for one in elected for c in (one.component, *one.others)}
    order = np.lexsort((seen.paths.mark, -votes))
    runners = [c for c in order.tolist() if c not in blamed and votes[c] > 0][:_RUNNERS]
    return tuple(
        Cleared(c, seen.paths.names[c], float(votes[c]), float(remaining[c]), "too few votes are left for it")
        for c in runners
    )


EVERYWHERE = 0.05
"""Share of lost packets from which it is worth saying that nobody in particular loses them."""

CONTRAST = 0.8
"""Share of packets lost above which too little is healthy to tell several components apart."""

PROBABLE, PROBABLE_OUTVOTED = 0.9, 0.8
"""Least probability of a suspect where noise is not as it should be, and if mostly failing flows name their path."""

UNKNOWN = 100
"""Failing flows from which `quiet` would be wrong where only such are reported and no component stands out."""

BAD_PATH = 1e-3
"""Share of lost packets above which a path is bad for the simpler methods: above what healthy networks lose."""


@dataclass(frozen=True, slots=True, eq=False)
class VotingResult:
    """Result of a method: `by_flow[r]` is the charge (an index) or -1 that failing row r is put down to. `strength`
    names the unit of evidence and `account` says how it was concluded.
    """

    charges: tuple[Charge, ...]
    cleared: tuple[show.Cleared, ...]
    by_flow: Ints
    strength: str
    account: str


def verdict_of(
    window: Window,
    seen: Observed,
    result: VotingResult,
    measures: Mapping[str, Any],
    assumptions: tuple[Assumption, ...],
) -> Verdict:
    """Verdict, for a person on call."""
    words, result = show.words(window), _probable(result, assumptions)
    reason = _nothing_known(seen, result.charges, words, assumptions)
    charges = () if reason else result.charges
    owner = result.by_flow if not reason else np.full(seen.failing.rows, -1, dtype=np.int64)
    figures = {
        **measures,
        "failing_flows_blamed": int(seen.failing.flows[owner >= 0].sum()),
        "failing_flows_by_chance": int(seen.failing.flows[owner < 0].sum()),
    }
    evidence = _evidence(window, seen, result, charges, owner)
    if reason:
        return Verdict("inconclusive", (), reason, figures, evidence, assumptions)
    if not charges:
        return quiet(figures, evidence, assumptions)
    suspects = tuple(_suspect(window, seen, one, words, assumptions) for one in charges)
    return Verdict("named", suspects, None, figures, evidence, assumptions)


def _probable(result: VotingResult, assumptions: Sequence[Assumption]) -> VotingResult:
    """Rest where noise or paths are not as they should be: charges that are probable all the same."""
    if all(one.holds for one in assumptions if one.name != "sampling"):
        return result
    sampled = all(one.holds for one in assumptions if one.name == "sampling")
    least = PROBABLE if sampled else PROBABLE_OUTVOTED
    likely = [
        at
        for at, one in enumerate(result.charges)
        if one.score is None or lowered(one.score, assumptions) >= least
    ]
    place = np.full(len(result.charges) + 1, -1, dtype=np.int64)
    place[likely] = np.arange(len(likely))
    return replace(result, charges=tuple(result.charges[at] for at in likely), by_flow=place[result.by_flow])


def _evidence(
    window: Window, seen: Observed, result: VotingResult, charges: Sequence[Charge], owner: Ints
) -> tuple[Evidence, ...]:
    words = show.words(window)
    names = [one.names[0] for one in charges]
    blamed = {name for one in charges for name in one.names}
    shown: list[Evidence | None] = []
    if charges:
        shown.append(show.blamed_table(charges, words, result.strength))
    shown.append(show.cleared_table(seen, result.cleared, words, result.strength))
    if seen.failing.rows:
        shown.append(show.rates_chart(seen, charges, result.cleared, owner, words))
        shown.append(show.over_time(window, seen, owner, names, words))
        shown.append(show.flows_table(seen, owner, names, words))
        shown.append(simpler_methods(seen.paths, BAD_PATH, blamed))
    shown.append(text("Method", result.account))
    return tuple(one for one in shown if one is not None)


def _nothing_known(
    seen: Observed, charges: Sequence[Charge], words: show.Words, assumptions: Sequence[Assumption]
) -> str | None:
    """Much is lost and nobody in particular loses it: `quiet` would be wrong, and a name would be a guess."""
    sampled = all(one.holds for one in assumptions if one.name == "sampling")
    sent = seen.sent if sampled else seen.sent + seen.sent_without_path
    failing = float(seen.failing.flows.sum())
    noise = [one.detail for one in assumptions if one.name != "sampling" and not one.holds]
    if not sampled and noise and (not charges or len(charges) > CROWD):
        return (
            f"{noise[0]} What each component carries is not known, and where that is uneven, innocent components stand "
            "out. Needed: the paths of flows without a loss, too; a random sample of them is enough."
        )
    if not sampled and seen.sent_without_path < seen.sent:
        if charges or failing < UNKNOWN:
            return None
        return (
            f"{count(failing)} {words.flows} lost {words.packets} and no component stands out among them. Mostly "
            f"failing {words.flows} are reported, so the loss rate is unknown."
        )
    share = (seen.lost if sampled else seen.lost + seen.without_path) / max(sent, 1.0)
    lost = f"{percent(share)} of {count(sent)} {words.packets} are lost"
    if len(charges) > 1 and share >= CONTRAST:
        return (
            f"{lost}: too few are healthy to separate components. The cause may lie outside the paths, or in "
            "the telemetry."
        )
    if charges or (share < EVERYWHERE and not noise):
        return None
    if share < EVERYWHERE:
        return " ".join(noise)
    return (
        f"{lost}, and no component or small set of components explains it: the cause may lie outside the paths, "
        "or in the telemetry."
    )


def _suspect(
    window: Window, seen: Observed, charge: Charge, words: show.Words, assumptions: Sequence[Assumption]
) -> Suspect:
    when = show.span(window, seen, charge)
    return Suspect(
        component=charge.names[0],
        score=None if charge.score is None else lowered(charge.score, assumptions),
        summary=_sentence(charge, words),
        p_value=charge.p_value,
        q_value=charge.q_value,
        estimate=charge.estimate,
        ambiguous_with=tuple(sorted(charge.names[1:])),
        sure=charge.sure,
        first_failure=when[0] if when else None,
        last_failure=when[1] if when else None,
    )


def _sentence(charge: Charge, words: show.Words) -> str:
    lost = round(charge.lost)
    if charge.estimate is None:
        sentence = (
            f"{charge.names[0]} lies on {count(charge.flows)} {words.flows} with losses of {count(charge.pairs)} "
            f"{words.pairs}, where about {count(charge.expected)} would be by chance"
        )
        return f"{sentence}. {_only(charge)}"
    sentence = (
        f"{charge.names[0]} loses {percent(charge.estimate.failure_rate)} of what is sent over it: {count(lost)} of "
        f"{count(charge.carried)} {words.packets}, on {count(charge.flows)} {words.flows} of {count(charge.pairs)} "
        f"{words.pairs}"
    )
    if charge.expected:
        sentence += f"; about {count(charge.expected)} expected"
    return f"{sentence}. {_only(charge)}"


def _only(charge: Charge) -> str:
    if charge.names[1:]:
        return f"The paths do not separate it from {listed(charge.names[1:])}."
    return "No other component explains these losses."
