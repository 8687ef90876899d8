"""NetBouncer on one window of probes: its verdict, its assumptions, and the calibration of its scores.

Assumptions are checked on each window; a probability is lowered where one does not hold.

- `noise`: paths without a bad component lose probes independently, at a rate that is alike. Paths that lose more than
  noise and the blamed explain (bursts, congestion, components much noisier than others) speak against it.
- `sampling`: every component is crossed by paths that differ. Where only one path crosses it, nothing tells its loss
  from that of the path.
- `topology`: probes pass what they name. Where they do not, paths over a lossy component lose nothing.

The score of a suspect is how often a component with that much evidence lost probes in simulations.
`SCORES` was made by `python -m tests.benchmarks.netbouncer --calibrate --trials 200` (1,200 epochs) on tuning
seeds: half of the epochs healthy, the others with one to four links of U(.005, .06) in a network of k = 8;
noise U(0, 1e-5), U(0, 1e-4) and U(0, 1e-3); bursts of U(.02, .2) on none, 0.1 and 1 % of the paths; the bar
lowered by 3 nats so that doubtful links are seen too. Each pair is the middle of a step of evidence over the
bar, in nats, and the share of entries in that step that held a bad link (made monotone). Like every such figure
it holds for a world like the simulated one.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.netbouncer.evidence import evidence_of, sentence
from analyzers.builtin.netbouncer.refit import CLEAN
from analyzers.builtin.netbouncer.stages import Blamed, Found, bar_of, judge
from analyzers.builtin.paths import Incidence, incidence, spans, texts, with_sources
from analyzers.builtin.stats.probability import at_least, probability_at, q_values
from analyzers.builtin.text import percent
from analyzers.contract import (
    Assumption,
    Estimate,
    Params,
    Paths,
    Suspect,
    Verdict,
    Window,
    inconclusive,
    quiet,
)

MOST_SUSPECTS = 50
"""More than so many is a report, not a list of suspects."""
TOO_MUCH = 0.8
"""Share of lossy paths from which there is no background to compare with."""


def analyze(window: Window, params: Params) -> Verdict:
    seen = _observed(window, str(params["layer"]))
    measures: dict[str, Any] = {"paths": seen.paths, "components": seen.components}
    if seen.paths == 0:
        return inconclusive("no probe names its path", measures)
    if seen.paths == 1:
        return inconclusive("all probes took one path: its components cannot be separated", measures)
    is_link = _links(window, seen)
    found = judge(seen, is_link, float(params["min_loss"]), float(params["lambda"]), float(params["alpha"]))
    measures |= {"noise": found.noise, "lossy_paths": int((~found.clean).sum())}
    assumptions = checked(seen, found)
    if found.blamed and (~found.clean).mean() > TOO_MUCH and len(found.blamed) > 1:
        share = f"{100 * (~found.clean).mean():.0f} %"
        reason = f"{share} of the paths lose packets: nothing healthy is left to compare with"
        return inconclusive(reason, measures, assumptions)
    shown = evidence_of(seen, found)
    if not found.blamed:
        unmet = {one.name: one.detail for one in assumptions if not one.holds}
        if "noise" in unmet or ("sampling" in unmet and undecidable(seen, found)):
            return Verdict("inconclusive", (), " ".join(unmet.values()), measures, shown, assumptions)
        return quiet(measures, shown, assumptions)
    adjusted = q_values(np.array([one.p_value for one in found.blamed]), seen.components)
    blamed = [one.component for one in found.blamed]
    when = spans(window, str(params["layer"]), seen, blamed, found.noise)
    suspects = [
        _suspect(seen, one, q, len(blamed), when.get(one.component), assumptions)
        for one, q in zip(found.blamed[:MOST_SUSPECTS], adjusted.tolist()[:MOST_SUSPECTS], strict=True)
    ]
    return Verdict("named", tuple(suspects), None, measures, shown, assumptions)


def _links(window: Window, seen: Incidence) -> NDArray[np.bool_]:
    """Components judged as links: links, or whatever the sender calls so; and the senders of probes themselves."""
    sources = set(texts(window.sums["paths"], "src")) if "src" in window.sums["paths"].keys else set()
    is_source = np.array([name in sources for name in seen.names])
    is_link = np.array([name.startswith("link/") for name in seen.names])
    return np.asarray(is_link | is_source | (not is_link[~is_source].any()), dtype=np.bool_)


def _suspect(
    seen: Incidence,
    one: Blamed,
    q_value: float,
    blamed: int,
    when: tuple[datetime, datetime] | None,
    assumptions: tuple[Assumption, ...],
) -> Suspect:
    low, high = min(one.low, one.loss), max(one.high, one.loss)
    return Suspect(
        component=seen.names[one.component],
        score=lowered(probability(surplus_of(one.ratio, seen.components, blamed)), assumptions),
        summary=sentence(seen, one),
        p_value=one.p_value,
        q_value=q_value,
        estimate=Estimate(one.loss, low, high, "loses {} of the probes over it"),
        ambiguous_with=tuple(sorted(seen.alike[one.component])),
        sure=surplus_of(one.ratio, seen.components) >= SURE and all(each.holds for each in assumptions),
        first_failure=when[0] if when else None,
        last_failure=when[1] if when else None,
    )


def _observed(window: Window, layer: str) -> Incidence:
    sums = window.sums["paths"]
    key = sums.keys["hops"] if "hops" in sums.keys else sums.keys["components"]
    assert isinstance(key, Paths)
    sent = np.asarray(sums.values["sent"], dtype=np.float64)
    if "layer" in sums.keys:
        layers = sums.keys["layer"]
        assert isinstance(layers, tuple)
        of_layer: NDArray[np.bool_] = np.array([one == layer for one in layers], dtype=np.bool_)
        sent = np.where(of_layer, sent, 0.0)
    if "src" in sums.keys:
        key = with_sources(key, texts(sums, "src"))
    return incidence(key, sent, sums.values["lost"])


NOISY = 0.02
"""Share of paths with losses that nothing explains from which noise is not what the method takes it for."""
FEW_PATHS = 0.1
"""Share of components with one path from which the rows are no fair sample."""
TOO_CLEAN = 0.1
"""Share of the blamed components' paths that lose too little from which the named hops are doubtful."""

_LEAST = 3
_SURELY = 1e-4
_LOWERED = {"noise": 1.5, "sampling": 0.5, "topology": 0.7}
"""Nats that the odds of a probability lose where an assumption does not hold."""


def checked(seen: Incidence, found: Found) -> tuple[Assumption, ...]:
    return _noise(seen, found), _sampling(seen), _topology(seen, found)


def undecidable(seen: Incidence, found: Found) -> bool:
    """Whether a path surely loses more than noise that is the only one of a component."""
    crossing = np.bincount(seen.column, minlength=seen.components)
    lonely = np.bincount(seen.row[crossing[seen.column] == 1], minlength=seen.paths) > 0
    return bool(np.any(lonely & (at_least(seen.failures, seen.attempts, found.noise) <= _SURELY)))


def lowered(score: float, assumptions: tuple[Assumption, ...]) -> float:
    """A probability after what it loses to assumptions that do not hold."""
    lost = sum(_LOWERED[one.name] for one in assumptions if not one.holds)
    return 1 / (1 + math.exp(lost - math.log(score / (1 - score)))) if lost else score


def _noise(seen: Incidence, found: Found) -> Assumption:
    struck = int(found.unexplained.sum())
    holds = struck < _LEAST or struck <= NOISY * seen.paths
    detail = (
        f"{struck:,} of {seen.paths:,} paths lose more than noise of {percent(found.noise)} and the blamed components "
        f"explain; up to {percent(NOISY)} is usual."
    )
    return Assumption("noise", holds, detail)


def _sampling(seen: Incidence) -> Assumption:
    crossing = np.bincount(seen.column, minlength=seen.components)
    single = int(np.count_nonzero(crossing == 1))
    holds = single <= FEW_PATHS * seen.components
    return Assumption(
        "sampling", holds, f"{single:,} of {seen.components:,} components are crossed by one path only."
    )


def _topology(seen: Incidence, found: Found) -> Assumption:
    """Paths over the blamed that lose less than the lower bound of the blamed one's loss makes probable."""
    clean = np.zeros(seen.paths, dtype=bool)
    over = seen.containing([one.component for one in found.blamed])
    for one in found.blamed:
        on = seen.containing([one.component])
        returned = seen.attempts - seen.failures
        clean |= on & (at_least(returned, seen.attempts, np.full(seen.paths, 1 - one.low)) <= CLEAN)
    spared = int(clean.sum())
    holds = spared < _LEAST or spared <= TOO_CLEAN * over.sum()
    detail = f"{spared:,} of {int(over.sum()):,} paths over blamed components lose too little for that."
    return Assumption("topology", holds, detail if found.blamed else "No component is blamed.")


ALPHA = 1e-4
"""The default level of the test."""
SURE = 12.0
"""Nats over the bar of a single blamed one from which one window is enough."""

SCORES: tuple[tuple[float, float], ...] = (
    (-2.5, 0.045),
    (-1.5, 0.101),
    (-0.5, 0.295),
    (0.75, 0.476),
    (2.25, 0.798),
    (4.5, 0.954),
    (9.0, 0.992),
    (18.5, 0.996),
)


def surplus_of(ratio: float, components: int, blamed: int = 1) -> float:
    """Nats by which evidence is above the bar of one of so many blamed ones, at the default level whatever was set."""
    return (ratio - bar_of(ALPHA, components)(blamed)) / 2


def probability(surplus: float) -> float:
    """The probability that a component is at fault, given its evidence above the bar in nats."""
    return probability_at(SCORES, surplus)
