"""The verdict in tables and sentences, the same for every method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import simpler_methods
from analyzers.builtin.text import count, listed, percent
from analyzers.builtin.voting import evidence as show
from analyzers.builtin.voting.assumptions import lowered
from analyzers.builtin.voting.charges import Charge
from analyzers.builtin.voting.observed import Observed
from analyzers.contract import Assumption, Evidence, Suspect, Verdict, Window, quiet, text

Ints = NDArray[np.int64]

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
    """What a method has to say: `by_flow[r]` is the charge (an index) or -1 that failing row r is put down to.
    `strength` names the unit of evidence and `account` says how it was concluded.
    """

    charges: tuple[Charge, ...]
    cleared: tuple[show.Cleared, ...]
    by_flow: Ints
    strength: str
    account: str


def verdict_of(
    window: Window,
    seen: Observed,
    told: VotingResult,
    measures: Mapping[str, Any],
    assumptions: tuple[Assumption, ...],
) -> Verdict:
    """What a person on call reads."""
    said, told = show.words(window), _probable(told, assumptions)
    reason = _nothing_known(seen, told.charges, said, assumptions)
    charges = () if reason else told.charges
    owner = told.by_flow if not reason else np.full(seen.failing.rows, -1, dtype=np.int64)
    figures = {
        **measures,
        "failing_flows_blamed": int(seen.failing.flows[owner >= 0].sum()),
        "failing_flows_by_chance": int(seen.failing.flows[owner < 0].sum()),
    }
    evidence = _evidence(window, seen, told, charges, owner)
    if reason:
        return Verdict("inconclusive", (), reason, figures, evidence, assumptions)
    if not charges:
        return quiet(figures, evidence, assumptions)
    suspects = tuple(_suspect(window, seen, one, said, assumptions) for one in charges)
    return Verdict("named", suspects, None, figures, evidence, assumptions)


def _probable(told: VotingResult, assumptions: Sequence[Assumption]) -> VotingResult:
    """What is left where noise or paths are not as they should be: charges that are probable all the same."""
    if all(one.holds for one in assumptions if one.name != "sampling"):
        return told
    sampled = all(one.holds for one in assumptions if one.name == "sampling")
    least = PROBABLE if sampled else PROBABLE_OUTVOTED
    kept = [
        at
        for at, one in enumerate(told.charges)
        if one.score is None or lowered(one.score, assumptions) >= least
    ]
    place = np.full(len(told.charges) + 1, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    return replace(told, charges=tuple(told.charges[at] for at in kept), by_flow=place[told.by_flow])


def _evidence(
    window: Window, seen: Observed, told: VotingResult, charges: Sequence[Charge], owner: Ints
) -> tuple[Evidence, ...]:
    said = show.words(window)
    names = [one.names[0] for one in charges]
    blamed = {name for one in charges for name in one.names}
    shown: list[Evidence | None] = []
    if charges:
        shown.append(show.blamed_table(charges, said, told.strength))
    shown.append(show.cleared_table(seen, told.cleared, said, told.strength))
    if seen.failing.rows:
        shown.append(show.rates_chart(seen, charges, told.cleared, owner, said))
        shown.append(show.over_time(window, seen, owner, names, said))
        shown.append(show.flows_table(seen, owner, names, said))
        shown.append(simpler_methods(seen.paths, BAD_PATH, blamed))
    shown.append(text("How this was concluded", told.account))
    return tuple(one for one in shown if one is not None)


def _nothing_known(
    seen: Observed, charges: Sequence[Charge], said: show.Words, assumptions: Sequence[Assumption]
) -> str | None:
    """Much is lost and nobody in particular loses it: `quiet` would be wrong, and a name would be a guess."""
    sampled = all(one.holds for one in assumptions if one.name == "sampling")
    sent = seen.sent if sampled else seen.sent + seen.sent_without_path
    failing = float(seen.failing.flows.sum())
    noise = [one.detail for one in assumptions if one.name != "sampling" and not one.holds]
    if not sampled and noise and not charges:
        return f"{noise[0]} Traffic is not known, and where it is uneven, that makes innocent components stand out."
    if not sampled and seen.sent_without_path < seen.sent:
        if charges or failing < UNKNOWN:
            return None
        return (
            f"{count(failing)} {said.flows} lost {said.packets} and no component stands out among them. Mostly failing "
            f"{said.flows} are reported, so that nothing says how much is lost."
        )
    share = (seen.lost if sampled else seen.lost + seen.without_path) / max(sent, 1.0)
    lost = f"{percent(share)} of {count(sent)} {said.packets} are lost"
    if len(charges) > 1 and share >= CONTRAST:
        return (
            f"{lost}: too little is healthy to tell components apart. The cause may lie outside the paths, or in "
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
    window: Window, seen: Observed, charge: Charge, said: show.Words, assumptions: Sequence[Assumption]
) -> Suspect:
    when = show.span(window, seen, charge)
    return Suspect(
        component=charge.names[0],
        score=None if charge.score is None else lowered(charge.score, assumptions),
        summary=_sentence(charge, said),
        p_value=charge.p_value,
        q_value=charge.q_value,
        estimate=charge.estimate,
        ambiguous_with=tuple(sorted(charge.names[1:])),
        sure=charge.sure,
        first_failure=when[0] if when else None,
        last_failure=when[1] if when else None,
    )


def _sentence(charge: Charge, said: show.Words) -> str:
    lost = round(charge.lost)
    if charge.estimate is None:
        sentence = (
            f"{charge.names[0]} lies on {count(charge.flows)} {said.flows} with losses of {count(charge.pairs)} "
            f"{said.pairs}, where about {count(charge.expected)} would be by chance"
        )
        return f"{sentence}. {_only(charge)}"
    sentence = (
        f"{charge.names[0]} loses {percent(charge.estimate.failure_rate)} of what is sent over it: {count(lost)} of "
        f"{count(charge.carried)} {said.packets}, on {count(charge.flows)} {said.flows} of {count(charge.pairs)} "
        f"{said.pairs}"
    )
    if charge.expected:
        sentence += f", where about {count(charge.expected)} would be normal"
    return f"{sentence}. {_only(charge)}"


def _only(charge: Charge) -> str:
    if charge.names[1:]:
        return f"It may as well be {listed(charge.names[1:])}: the paths cannot tell them apart."
    return "No other component explains these losses."
