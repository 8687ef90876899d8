"""From a window of probes to a verdict."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.netbouncer.assumptions import checked, lowered, undecidable
from analyzers.builtin.netbouncer.calibration import SURE, probability, surplus_of
from analyzers.builtin.netbouncer.evidence import evidence_of, sentence
from analyzers.builtin.netbouncer.stages import Blamed, judge
from analyzers.builtin.paths import Incidence, incidence, texts, with_sources
from analyzers.builtin.stats.onset import spans
from analyzers.builtin.stats.probability import q_values
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
"""Where more of the paths than this are lossy there is no background to compare with."""


def analyze(window: Window, params: Params) -> Verdict:
    seen = _observed(window, str(params["layer"]))
    measures: dict[str, Any] = {"paths": seen.paths, "components": seen.components}
    if seen.paths == 0:
        return inconclusive("there are no probes that name what they passed", measures)
    if seen.paths == 1:
        return inconclusive(
            "all probes took one path: nothing on it can be told from anything else", measures
        )
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
    """What is judged as a link: links, or whatever the sender calls so; and the senders of probes themselves."""
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
