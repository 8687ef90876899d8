"""The verdict on one window of metrics, with its assumptions.

- `history`: windows before show what is usual, for a day where load follows the clock.
- `sampling`: series have nine in ten of the readings that they usually have.
- `noise`: readings of most series depend little on the ones before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analyzers.builtin.changepoint import evidence as show
from analyzers.builtin.changepoint.detect import Detected, detect
from analyzers.builtin.changepoint.findings import Changed, Outcome, conclude
from analyzers.builtin.changepoint.series import Observed, observe
from analyzers.builtin.text import count, moment, percent, so_many
from analyzers.contract import Assumption, Params, Suspect, Verdict, Window, inconclusive, quiet

MOST_SUSPECTS = 20
_PRESENT = 0.9
_DEPENDENT = 0.5
_DAY_SECONDS = 86_400


def analyze(window: Window, params: Params) -> Verdict:
    seen = observe(window, params)
    if not seen.series:
        return inconclusive(_nothing(seen), _measures(seen, None, None))
    found = detect(seen, params)
    if not len(found.judged):
        return inconclusive(_too_short(seen, params), _measures(seen, found, None))
    outcome = conclude(seen, found)
    assumptions = _checked(seen, found)
    figures = _measures(seen, found, outcome)
    shown = show.pieces(seen, outcome)
    if outcome.named:
        suspects = tuple(_suspect(seen, one) for one in outcome.named[:MOST_SUSPECTS])
        return Verdict("named", suspects, None, figures, shown, assumptions)
    if outcome.common:
        most = max(outcome.common, key=lambda one: (one.changed, one.name))
        since = moment(seen.starts[min(one.at for one in most.changes)])
        reason = (
            f"{most.name} changed alike on {count(most.changed)} of {so_many(most.components, 'component')} "
            f"from {since} on: what they share changed, and none of them is named."
        )
        return Verdict("inconclusive", (), reason, figures, shown, assumptions)
    return quiet(figures, shown, assumptions)


def _nothing(seen: Observed) -> str:
    if not seen.unnamed:
        return "There are no metrics in this window."
    return (
        f"No label of {count(seen.unnamed)} series names a component: labels that do are listed in the "
        "documentation, and the parameter `component_label` names another."
    )


def _too_short(seen: Observed, params: Params) -> str:
    minutes = count(seen.first * seen.width.total_seconds() / 60)
    return (
        f"None of {count(len(seen.series))} series has {params['least_samples']} minutes with samples in the {minutes} "
        "minutes before what is judged, and three in the window, without wandering: give more history."
    )


def _measures(seen: Observed, found: Detected | None, outcome: Outcome | None) -> dict[str, Any]:
    judged = 0 if found is None else len(found.judged)
    return {
        "series": len(seen.series),
        "series_without_component": seen.unnamed,
        "series_not_judged": len(seen.series) - judged,
        "components": len({one.component for one in seen.series}),
        "changed_series": 0 if found is None else len(found.changes),
        "common_changes": 0 if outcome is None else len(outcome.common),
        "steady_components": 0 if outcome is None else len(outcome.steady),
        "named": 0 if outcome is None else len(outcome.named),
    }


def _checked(seen: Observed, found: Detected) -> tuple[Assumption, ...]:
    known = seen.first * seen.width.total_seconds()
    history = Assumption(
        "history",
        known >= _DAY_SECONDS,
        f"{count(round(known / 3600, 1))} hours before what is judged are known; load that follows the clock needs 24.",
    )
    there = np.isfinite(seen.values[found.judged])
    before, inside = there[:, : seen.first].mean(), there[:, seen.now :].mean()
    share = min(1.0, float(inside / before)) if before else 0.0
    sampling = Assumption(
        "sampling", share >= _PRESENT, f"{percent(share)} of the readings that series usually have are there."
    )
    independent = int((found.rho < _DEPENDENT).sum())
    noise = Assumption(
        "noise",
        2 * independent >= len(found.rho),
        f"Readings of {count(independent)} of {count(len(found.rho))} series depend little on the ones before.",
    )
    return history, noise, sampling


def _suspect(seen: Observed, one: Changed) -> Suspect:
    sentence = show.sentence(seen, one)
    since, last = one.since, max(each.end for each in one.changes)
    low, high = show.begins(seen, since.first), show.ends(seen, since.last)
    return Suspect(
        component=one.component,
        score=None,
        summary=(
            f"{one.component} {sentence}, since {moment(seen.starts[since.at])} "
            f"(95 %: {low[11:16]} to {high[11:16]} UTC)."
        ),
        first_failure=seen.starts[since.at],
        last_failure=min(seen.starts[last - 1] + seen.width, seen.starts[-1] + seen.width),
        phrase=sentence[:200],
        indicator=seen.series[one.changes[0].series].name[:100],
    )
