"""Findings of several analyzers about one fault under different names: a rank, its network card, its node. Pure.

A finding that would open an incident joins an open one instead if the topology ties both components together and other
analyzers blame the incident for failures that began about the same time. Conditions against a wrong join:

- The finding's analyzer never named the incident's cause, nor does the same run: an analyzer that names both components
  tells two faults apart.
- A part and its whole are one step apart; what rests on the cause by a dependency is two steps away at most.

The cause is the component that others depend on; of a part and its whole it is the part, as the whole is what an
analyzer names that sees no parts. It is the whole where several parts of it are blamed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from incidents.domain.incident.alerts import Explanation, Links, explain, explains
from incidents.domain.incident.finding import Finding, JoinOpen, Relation
from incidents.domain.incident.outcome import has_blamed
from incidents.domain.incident.state import Incident

MOST_STEPS: Final = 2
"""A rank rests on its network card, which is part of a node; further up a strange fault would be taken in."""
BEGAN_APART: Final = timedelta(hours=1)
"""In data time: failures whose beginnings are further apart are two faults. Windows cut the beginnings off, those of
different analyzers by different lengths."""

Cause = frozenset[str]


def candidates(finding: Finding, incidents: Sequence[Incident], beside: Collection[Cause]) -> list[Incident]:
    """Of open incidents those that a finding may be about, as far as is known without the topology.

    `beside` are the causes of the other suspects of the finding's run.
    """
    return [] if finding.forecast else [one for one in incidents if _possible(finding, one, beside)]


def _possible(finding: Finding, incident: Incident, beside: Collection[Cause]) -> bool:
    own = incident.opinions.get(finding.analyzer)
    told_apart = own is not None and has_blamed(own) and bool(own.cause & incident.cause)
    if told_apart or any(cause & incident.cause for cause in beside):
        return False
    began = incident.failing_since or min(one.window_start for one in incident.opinions.values())
    return (
        explains(incident)
        and incident.region == finding.region
        and abs(_began(finding) - began) <= BEGAN_APART
    )


def _began(finding: Finding) -> datetime:
    return finding.first_failure or finding.window_start


def join_of(
    finding: Finding, found: Sequence[Incident], beside: Collection[Cause], links: Mapping[str, Links]
) -> JoinOpen | None:
    """The incident among `candidates` that the topology ties to a finding most closely; None without one."""
    above = [(one, tie) for one in found if (tie := _tie(finding.cause, one.cause, links))]
    below = [(one, tie) for one in found if (tie := _tie(one.cause, finding.cause, links))]
    parts = sum(tie.contained for _, tie in below)
    joins = [(tie.hops, one.number, JoinOpen(one, _above(tie, beside, links))) for one, tie in above]
    joins += [
        (tie.hops, one.number, JoinOpen(one, Relation(not tie.contained or parts > 1, tie.how)))
        for one, tie in below
    ]
    return min(joins, key=lambda one: one[:2])[2] if joins else None


def _above(tie: Explanation, beside: Collection[Cause], links: Mapping[str, Links]) -> Relation:
    """The relation of a finding that rests on the incident's cause."""
    others = (_tie(cause, frozenset({tie.cause}), links) for cause in beside)
    alone = not any(other is not None and other.contained for other in others)
    return Relation(tie.contained and alone, tie.how)


def _tie(names: Cause, causes: Cause, links: Mapping[str, Links]) -> Explanation | None:
    """How one of `names` rests on one of `causes`, the nearest; None beyond what may be one fault."""
    found = (explain(name, causes, links, MOST_STEPS) for name in sorted(names))
    ties = [one for one in found if one is not None and (one.hops == 1 or not one.contained)]
    return min(ties, key=lambda one: one.hops, default=None)
