"""The verdict on one window of function profiles, with its assumptions.

- `history`: an earlier profile shows what functions usually take on all workers; it counts for these only.
- `sampling`: nine in ten of the functions that matter have a row on each worker.
- `noise`: workers of a role differ by less than a fifth in the functions that matter.
- `roles`: in each function nearly all workers of a role are alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from analyzers.builtin.perftracker import differential, published
from analyzers.builtin.perftracker import evidence as show
from analyzers.builtin.perftracker.calibration import probability
from analyzers.builtin.perftracker.differential import Apart, Common, Found
from analyzers.builtin.perftracker.patterns import BETA, INDICATORS, MU, Role, nodes, roles
from analyzers.builtin.text import percent, so_many
from analyzers.contract import Assumption, Params, Suspect, Verdict, Window, inconclusive, quiet

SURE = 0.9
MOST_SUSPECTS = 20
_PRESENT, _ALIKE = 0.9, 0.2
_LOWERED = {"sampling": 0.5, "noise": 1.0, "roles": 0.5}
"""Nats that the odds of a probability lose where an assumption does not hold."""


def analyze(window: Window, params: Params) -> Verdict:
    found_roles = roles(window.sums["profiles"])
    least = int(params["min_workers"])
    if not any(len(role.workers) >= least for role in found_roles):
        return inconclusive(_too_few(found_roles, least), _measures(found_roles, None, ()))
    past = [roles(one.sums["profiles"]) for one in window.history]
    placed = nodes(window)
    if params["method"] == "published":
        found = published.differ(found_roles, params)
    else:
        found = differential.differ(found_roles, params, placed, past=past)
    causes = differential.common(found_roles, past, params)
    assumptions = _checked(found_roles, past, found, float(params["least_share"]))
    figures, shown = _measures(found_roles, found, causes), show.pieces(found_roles, found, causes, placed)
    suspects = (
        *(
            _suspect(window, one, assumptions, params, placed.get(one.component))
            for one in found.apart[:MOST_SUSPECTS]
        ),
        *_common_suspects(window, causes),
    )
    if suspects:
        return Verdict("named", suspects, None, figures, shown, assumptions)
    if found.groups:
        role, function, many = found.groups[0]
        reason = (
            f"{role.functions[function]} differs on {so_many(many, 'worker')} of {role.shown} or its job: "
            "they do other work under one role, or share a cause that a profile does not show."
        )
        return Verdict("inconclusive", (), reason, figures, shown, assumptions)
    return quiet(figures, shown, assumptions)


def _too_few(found: Sequence[Role], least: int) -> str:
    if not found:
        return "There are no function profiles in this window."
    most = max(found, key=lambda role: len(role.workers))
    return f"The largest role, {most.shown}, has {so_many(len(most.workers), 'worker')}; {least} are compared at least."


def _measures(found_roles: Sequence[Role], found: Found | None, causes: Sequence[Common]) -> dict[str, Any]:
    return {
        "workers": len({worker for role in found_roles for worker in role.workers}),
        "roles": len(found_roles),
        "functions": len({name for role in found_roles for name in role.functions}),
        "named": len(found.apart) if found else 0,
        "doubtful": len(found.doubtful) if found else 0,
        "groups": len(found.groups) if found else 0,
        "common": len(causes),
    }


def _checked(
    found_roles: Sequence[Role], past: Sequence[Sequence[Role]], found: Found, least: float
) -> tuple[Assumption, ...]:
    missing, cells, widths = 0, 0, list[float]()
    for role in found_roles:
        medians = role.medians()
        for function in np.flatnonzero(medians[BETA] >= least).tolist():
            beta = role.values[BETA, function]
            cells += len(beta)
            missing += int(np.isnan(beta).sum())
            off = np.abs(beta[np.isfinite(beta)] - medians[BETA, function])
            widths.append(1.4826 * float(np.median(off)) / float(medians[BETA, function]))
    share = 1 - missing / cells if cells else 1.0
    width = float(np.median(widths)) if widths else 0.0
    known = {(one.job, one.role) for some in past for one in some}
    new = sum((role.job, role.role) not in known for role in found_roles)
    return (
        Assumption(
            "history",
            not new,
            f"{so_many(new, 'role')} of {len(found_roles)} have no earlier profile: a function that is slow on all "
            "workers is only judged by its share.",
        ),
        Assumption(
            "noise", width <= _ALIKE, f"Workers of a role differ by {percent(width)} in a usual function."
        ),
        Assumption(
            "roles",
            not found.groups,
            f"In {so_many(len(found.groups), 'function')} a group of workers is apart.",
        ),
        Assumption(
            "sampling", share >= _PRESENT, f"{percent(share)} of the rows of functions that matter are there."
        ),
    )


def _suspect(
    window: Window, one: Apart, assumptions: Sequence[Assumption], params: Params, node: str | None
) -> Suspect:
    score = None
    if params["method"] == "robust":
        lost = sum(_LOWERED.get(each.name, 0.0) for each in assumptions if not each.holds)
        stated = probability(one.nats)
        score = 1 / (1 + math.exp(lost - math.log(stated / (1 - stated)))) if lost else stated
    phrase = sentence(one)
    return Suspect(
        component=one.component,
        score=score,
        summary=f"{one.component} {phrase}.",
        sure=score is not None and score >= SURE,
        first_failure=window.start,
        last_failure=window.end,
        phrase=phrase[:200],
        indicator=f"{one.name} {INDICATORS[_leading(one)]}"[:100],
        ambiguous_with=() if one.node else one.beside,
        path=_path(one, node),
    )


def _path(one: Apart, node: str | None) -> tuple[str, ...]:
    job = f"job/{one.role.job}"
    if one.node:
        return (one.node, job)
    return (one.component, node, job) if node else ()


def _leading(one: Apart) -> int:
    """The component that costs time: of the share of the path and the use that farther from the median."""
    off = [abs(math.log(max(ratio, 0.05))) for ratio in one.ratios]
    if one.cls == "python":
        return BETA
    if one.cls == "collective":
        return MU
    return max((MU, BETA), key=lambda component: off[component])


def sentence(one: Apart) -> str:
    """Fault of the worker, as the end of a sentence: the pattern, and its usual meaning."""
    beta, mu, sigma = one.ratios
    share = percent(float(one.role.values[BETA, one.function, one.worker]))
    if one.cls == "collective":
        kind = "steadily: its link may be capped" if sigma <= 1 else "now and then: its link may be congested"
        return f"uses its link in {one.name} {percent(1 - mu)} less than its peers, {kind}"
    if one.beside:
        where = (
            f"its {len(one.beside) + 1} workers"
            if one.node
            else f"and {len(one.beside)} more of its host by their numbers"
        )
        spend = "spend" if one.node else "each spend"
        takes = f"{share} of the critical path in {one.name}, {beta:.2g} times their peers: data, storage or the host"
        return f"{where} {spend} {takes}"
    if one.cls == "python":
        cause = "data, storage or its host"
        return f"spends {share} of the critical path in {one.name}, {beta:.2g} times its peers: {cause}"
    what = "its GPU may be throttled" if one.cls == "compute" else "its PCIe or memory may be degraded"
    if mu < 0.95:
        return f"takes {beta:.2g} times as long in {one.name} as its peers, at {percent(1 - mu)} less use: {what}"
    return f"takes {beta:.2g} times as long in {one.name} as its peers: {what}"


def _common_suspects(window: Window, causes: Sequence[Common]) -> tuple[Suspect, ...]:
    """One suspect for each job whose workers all have too much of a function."""
    suspects = []
    for job in sorted({one.role.job for one in causes}):
        mine = [one for one in causes if one.role.job == job]
        worst = mine[0]
        phrase = (
            f"spends {percent(worst.beta)} of the critical path in {worst.name} on nearly all workers"
            f"{'' if worst.before is None else f', {percent(worst.before)} before'}: "
            "code or configuration, not a machine"
        )
        suspects.append(
            Suspect(
                component=f"job/{job}",
                score=0.8,
                summary=f"job/{job} {phrase}.",
                first_failure=window.start,
                last_failure=window.end,
                phrase=phrase[:200],
                indicator=f"{worst.name} {INDICATORS[BETA]}"[:100],
            )
        )
    return tuple(suspects)
