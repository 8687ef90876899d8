"""A theory of an incident (cause -> path -> symptom), tested hop by hop. Pure.

A hop says that one component affects another. Four grounds, each with its figures and with what would test it:

- Topology: the effect depends on the cause, as of the opening of the incident. Without that edge nothing is decided:
  topologies have gaps, and who states a theory may know a dependency that nobody sent.
- Order: the cause changed first. Onsets are intervals (95 %, from `changepoint`), so the order may be unknown.
- Control: of what depends on the cause more shifted than of the rest, by Fisher's exact test. It needs the topology to
  have the hop: where it misses one dependent of the cause, it may miss others.
- Verdicts: analyzers blame the cause, or their path has the hop.

A hop is contradicted by any ground, and supported where the topology and another ground support it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from incidents.domain.incident.onset import (
    LEAST_CONTROLS,
    SIGNIFICANT,
    ChangeTest,
    MetricShifts,
    Verdict,
    fisher,
)
from incidents.domain.incident.state import Opinion
from incidents.domain.values import (
    InvalidValueError,
    check_component,
    check_line,
    check_list,
    check_object,
    optional_rfc3339,
    rfc3339,
)

MOST_HOPS: Final = 10
SURE: Final = 0.9
"""From this score on an analyzer that blames another component speaks against a cause."""
UNTESTED: Final = "cannot be tested"


@dataclass(frozen=True, slots=True)
class Hop:
    """`cause` affects `effect`; `at` is when it began to, `change` the id of a reported change that made it."""

    cause: str
    effect: str
    at: datetime | None = None
    change: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "cause": self.cause,
            "effect": self.effect,
            "at": optional_rfc3339(self.at),
            "change": self.change,
        }


@dataclass(frozen=True, slots=True)
class Ground:
    """Result of one ground for a hop; `would_test` is empty where it is decided."""

    name: str
    verdict: Verdict
    text: str
    would_test: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "ground": self.name,
            "verdict": self.verdict,
            "text": self.text,
            "would_test": self.would_test or None,
        }


@dataclass(frozen=True, slots=True)
class Known:
    """Facts about a hop. `way` is the chain of dependencies from the effect to the cause (None: there is none),
    `reverse` the other way round; `dependents` rest on the cause, the effect among them. `change` is the test of the
    change of the hop."""

    in_topology: Collection[str]
    way: Sequence[str] | None
    reverse: bool
    dependents: Collection[str]
    change: ChangeTest | None = None


@dataclass(frozen=True, slots=True)
class JudgedHop:
    hop: Hop
    verdict: Verdict
    grounds: tuple[Ground, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            **self.hop.as_json(),
            "verdict": self.verdict,
            "grounds": [one.as_json() for one in self.grounds],
        }


def hops_from(given: object) -> tuple[Hop, ...]:
    """Hops as they are given: `[{"cause", "effect", "at"?, "change"?}]`, each beginning where the one before ends.

    Raises InvalidValueError, of the hop and field.
    """
    hops: list[Hop] = []
    for place, written in enumerate(check_list("hops", given, MOST_HOPS, 1)):
        where = f"hops[{place}]"
        one = check_object(where, written, ("cause", "effect", "at", "change"))
        hop = Hop(
            check_component(f"{where}.cause", one.get("cause")),
            check_component(f"{where}.effect", one.get("effect")),
            _time(f"{where}.at", one.get("at")),
            None if one.get("change") is None else check_line(f"{where}.change", one["change"]),
        )
        if hop.cause == hop.effect:
            raise InvalidValueError(f"{where}.effect", "must be another component than the cause")
        if hops and hops[-1].effect != hop.cause:
            raise InvalidValueError(f"{where}.cause", f"must be {hops[-1].effect}, where the hop before ends")
        hops.append(hop)
    return tuple(hops)


def _time(field: str, given: object) -> datetime | None:
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(check_line(field, given))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidValueError(field, "must be an RFC 3339 time, such as 2026-01-31T12:00:00Z")
    return moment


# Grounds
# ----------------------------------------------------------------------------------------------------------
def judge_hop(hop: Hop, known: Known, shifts: MetricShifts, opinions: Sequence[Opinion]) -> JudgedHop:
    """The hop by all grounds. A gap in the topology alone contradicts nothing."""
    grounds = [
        _topology(hop, known),
        _order(hop, shifts),
        _control(hop, known, shifts),
        _verdicts(hop, opinions),
    ]
    if hop.change is not None:
        grounds.append(_change(hop.change, known.change))
    verdicts = {one.verdict for one in grounds}
    others = {one.verdict for one in grounds[1:]}
    verdict: Verdict = UNTESTED
    if "contradicted" in verdicts:
        verdict = "contradicted"
    elif grounds[0].verdict == "supported" and "supported" in others:
        verdict = "supported"
    return JudgedHop(hop, verdict, tuple(grounds))


def verdict_of(hops: Sequence[JudgedHop]) -> Verdict:
    """A chain is contradicted by any hop, and supported by all."""
    verdicts = {one.verdict for one in hops}
    if "contradicted" in verdicts:
        return "contradicted"
    return "supported" if verdicts == {"supported"} else UNTESTED


def _topology(hop: Hop, known: Known) -> Ground:
    if known.way is not None:
        chain = " -> ".join(known.way)
        return Ground("topology", "supported", f"{hop.effect} depends on {hop.cause}: {chain}.")
    missing = [name for name in (hop.cause, hop.effect) if name not in known.in_topology]
    if missing:
        text = f"The topology does not have {' and '.join(missing)}."
        return Ground("topology", UNTESTED, text, f"Send topology rows of {' and '.join(missing)}.")
    if known.reverse:
        text = f"{hop.cause} depends on {hop.effect}: it can affect it by load, not by a failure."
        return Ground("topology", UNTESTED, text, f"Measure the requests of {hop.cause} to {hop.effect}.")
    text = f"The topology has no dependency of {hop.effect} on {hop.cause}, directly or through others."
    remedy = f"Send the dependency of {hop.effect} as a topology row, if there is one."
    return Ground("topology", UNTESTED, text, remedy)


def _order(hop: Hop, shifts: MetricShifts) -> Ground:
    cause, effect = shifts.of((hop.cause,)), shifts.of((hop.effect,))
    for name, found in ((hop.cause, cause), (hop.effect, effect)):
        if found is None and name in shifts.steady:
            return Ground("order", "contradicted", f"No metric of {name} changed.")
    if effect is None or (cause is None and hop.at is None):
        missing = [name for name, one in ((hop.cause, cause), (hop.effect, effect)) if one is None]
        text = f"No metrics of {' and '.join(missing)} were judged over the opening of the incident."
        remedy = f"Send metric rows of {' and '.join(missing)}, and run changepoint over the opening."
        return Ground("order", UNTESTED, text, remedy)
    low, high = (hop.at, hop.at) if hop.at is not None else (cause.low, cause.high) if cause else (None, None)
    assert low is not None
    assert high is not None
    shown = f"{hop.cause} {_span(low, high)}, {hop.effect} {_span(effect.low, effect.high)} ({effect.metric})"
    if low > effect.high:
        return Ground("order", "contradicted", f"The cause came after the effect: {shown}.")
    if high <= effect.low:
        return Ground("order", "supported", f"The cause came before the effect: {shown}.")
    remedy = (
        f"Measure {hop.cause} and {hop.effect} more often: the order is within the interval of the onset."
    )
    return Ground("order", UNTESTED, f"The onsets overlap: {shown}.", remedy)


def _control(hop: Hop, known: Known, shifts: MetricShifts) -> Ground:
    if known.way is None:
        text = f"The topology does not have the dependents of {hop.cause} that the theory claims."
        return Ground("control", UNTESTED, text, f"Send the dependency of {hop.effect} as a topology row.")
    moved = {one.component for one in shifts.shifts}
    judged = (moved | shifts.steady) - {hop.cause}
    on, off = judged & set(known.dependents), judged - set(known.dependents)
    share = f"{len(on & moved)} of {len(on)} dependents of {hop.cause} shifted, {len(off & moved)} of {len(off)} others"
    if not on or len(off) < LEAST_CONTROLS:
        remedy = f"Send metric rows of dependents of {hop.cause} and of {LEAST_CONTROLS} or more others."
        return Ground("control", UNTESTED, f"Too few components with metrics: {share}.", remedy)
    p = fisher(len(on & moved), len(on), len(off & moved), len(off))
    if p <= SIGNIFICANT:
        return Ground("control", "supported", f"The rest stays healthy: {share} (p {p:.2g}).")
    if len(off & moved) >= LEAST_CONTROLS and len(off & moved) * len(on) >= len(on & moved) * len(off):
        text = f"Components that do not depend on it fail as often: {share} (p {p:.2g})."
        return Ground("control", "contradicted", text)
    return Ground(
        "control", UNTESTED, f"No clear difference: {share} (p {p:.2g}).", "More components with metrics."
    )


def _verdicts(hop: Hop, opinions: Sequence[Opinion]) -> Ground:
    blames = [one for one in opinions if one.stance in ("blames", "blames_other")]
    for one in blames:
        ends = [one.path.index(name) if name in one.path else None for name in (hop.cause, hop.effect)]
        if ends[0] is not None and ends[1] is not None:
            sentence = f"{one.analyzer} {one.version} has the path {' -> '.join(one.path)}, run {one.run}."
            return Ground("verdicts", "supported" if ends[0] < ends[1] else "contradicted", sentence)
    named = [one for one in blames if hop.cause in one.cause]
    if named:
        return Ground("verdicts", "supported", "; ".join(map(_opinion_text, named)) + ".")
    sure = [one for one in blames if one.score is not None and one.score >= SURE and hop.effect in one.cause]
    if sure:
        text = f"{'; '.join(map(_opinion_text, sure))}: the effect itself, not {hop.cause}."
        return Ground("verdicts", "contradicted", text)
    text = "; ".join(map(_opinion_text, blames)) or "No analyzer blames a component"
    return Ground("verdicts", UNTESTED, f"{text}.", f"Run an analyzer that observes {hop.cause}.")


def _opinion_text(one: Opinion) -> str:
    score = "" if one.score is None else f" with {one.score:.0%}"
    return f"{one.analyzer} {one.version} blames {one.component}{score}, run {one.run}"


def _change(id: str, test: ChangeTest | None) -> Ground:
    if test is None:
        text = f"No change {id} about this incident was reported."
        return Ground("change", UNTESTED, text, "Report the change with its component and time.")
    remedy = "Metrics of components that were not changed." if test.verdict == UNTESTED else ""
    return Ground("change", test.verdict, f"Change {id}: {' '.join(test.reasons)}", remedy)


def _span(low: datetime, high: datetime) -> str:
    return rfc3339(low) if low == high else f"{rfc3339(low)} to {rfc3339(high)}"
