"""The sentence, the probability and the title that an incident shows, from the latest words of its analyzers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from incidents.domain.incident.finding import title_of, verdict_of
from incidents.domain.incident.state import Incident, Opinions, agreeing, dissenting, fused, replace

AS_BEFORE: Final[Mapping[str, Any]] = {
    "confidence": None,
    "analyzer": None,
    "title": None,
    "verdict": None,
    "agreeing": [],
}


def conclusion(
    opinions: Opinions, component: str | None, cause: frozenset[str], named: frozenset[str]
) -> Mapping[str, Any]:
    """Joint opinion of the analyzers that blame the cause, or a component related to it: first those that name the
    cause itself, whose opinion is the title. Where none of them names it the verdict says so. A blame is lowered by
    those that judged the cause and did not name it. None leaves the incident as it is."""
    together = sorted(agreeing(opinions, named), key=lambda one: not one.cause & cause)
    if not together:
        return AS_BEFORE
    against = dissenting(opinions, together)
    taken_off = sum(one.dissent.against(len(together)) for one in against)
    confidence = fused((one.score for one in together), dissent=taken_off)
    first, names = together[0], [one.analyzer for one in together]
    if component in first.cause:
        # Of suspects that the analyzer cannot tell apart the incident may know better which one it is.
        first = replace(
            first, component=component, ambiguous_with=tuple(sorted(first.cause & cause - {component}))
        )
    names_cause = bool(first.cause & cause)
    verdict = verdict_of(first, confidence, names, [one.analyzer for one in against])
    if not names_cause and component is not None:
        verdict = f"{component} is blamed through a related component: {verdict}"
    return {
        "confidence": confidence,
        "analyzer": names[0],
        "title": title_of(first) if names_cause else None,
        "verdict": verdict,
        "agreeing": names,
    }


def reconsidered(state: Incident, opinions: Opinions) -> Mapping[str, Any]:
    """Joint opinion of those that still blame the cause, once one does so no more or another dissents."""
    before, after = (agreeing(each, state.named) for each in (state.opinions, opinions))
    if len(before) == len(after) and dissenting(state.opinions, before) == dissenting(opinions, after):
        return AS_BEFORE
    return conclusion(opinions, state.component, state.cause, state.named)
