"""Measurements that tell suspects of one failure apart, ranked by expected information, and Bayes' rule. Pure.

One of the suspects is at fault, or none of them (`NONE`). A measurement tests a set T of components; it is positive
with probability d (detection rate) if the component at fault is in T, and f (false-alarm rate) if not. With q the
probability of T, its expected information is the mutual information of its outcome and the component at fault,

    I = H(q d + (1 - q) f) - q H(d) - (1 - q) H(f)      bits,  H(x) = -x log2 x - (1 - x) log2 (1 - x)

(Lindley, On a measure of the information provided by an experiment, 1956; for probes in networks Rish et al., Adaptive
diagnosis in distributed systems, IEEE Transactions on Neural Networks 16(5), 2005). An answer multiplies each
probability with its likelihood.

I also counts what is learnt about suspects that are ruled out and about `NONE`. A measurement of both of the last two
suspects may therefore be worth a lot and tell them apart not at all. So measurements are ranked by the part of I that
tells those that remain apart: with R the event that the component at fault is one of them, I = I(outcome; R) +
P(R) I(outcome; component | R) + P(not R) I(outcome; component | not R), and the second term counts, divided by minutes
plus cost. Where one suspect remains, the whole of I counts: it is to be confirmed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, Literal, get_args

from incidents.domain.values import parse_rfc3339, rfc3339

QuestionKind = Literal["probe", "link_test", "benchmark", "drain"]
Outcome = Literal["positive", "negative", "unclear"]
KINDS: Final[tuple[QuestionKind, ...]] = get_args(QuestionKind)
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
NONE: Final = "none"
"""The hypothesis that no suspect is at fault."""
Beliefs = Mapping[str, float]
"""Probability by suspect, and of `NONE`; they add up to 1."""

MOST_SUSPECTS: Final = 64
"""Less likely ones count as `NONE`."""
UNCALIBRATED: Final = 0.5
"""Probability of a group without a score."""
SETTLED: Final = 0.95
"""From this probability on, one suspect needs no question."""
LEAST_BITS: Final = 0.01
RULED_OUT: Final = 20.0
"""A suspect that is this many times less likely than the leading one of its group is ruled out."""


# Measurements
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Costs:
    """Of one kind of measurement: rates, minutes until the answer, and what it costs beside them, in minutes of an
    engineer or of lost capacity."""

    detection: float
    false_alarm: float
    minutes: float
    cost: float


COSTS: Final[Mapping[QuestionKind, Costs]] = {
    "probe": Costs(0.99, 0.01, 1.0, 0.0),
    "link_test": Costs(0.9, 0.02, 5.0, 5.0),
    "benchmark": Costs(0.9, 0.02, 30.0, 30.0),
    "drain": Costs(0.95, 0.1, 15.0, 30.0),
}
"""Assumed, not measured; those of a probe are its best, see `probe`."""
LATE_ANSWERS: Final = Costs(0.9, 0.05, 1.0, 0.0)
"""Of a probe where the failure is latency."""

BACKGROUND: Final = 1e-4
"""Share of packets lost without a fault: 1e-5 to 1e-4 in data centres (Guo et al., Pingmesh, SIGCOMM 2015)."""
ASSUMED_RATE: Final = 0.05
"""Share of packets that a faulty component loses where no analyzer estimates it."""
PACKETS: Final = (100, 400, 1600, 6400)
PACKETS_A_MINUTE: Final = 600
LEAST_PACKETS: Final = 50


@dataclass(frozen=True, slots=True)
class Question:
    """A measurement: it is positive if one of `tests` is at fault.

    `src`, `dst`, `hops` (sorted) and `packets` to send are of probes; `rate` is the share of packets that the fault
    loses (0: it delays them).
    """

    kind: QuestionKind
    target: str
    tests: tuple[str, ...]
    detection: float
    false_alarm: float
    minutes: float
    cost: float
    src: str = ""
    dst: str = ""
    hops: tuple[str, ...] = ()
    packets: int = 0
    rate: float = 0.0

    @property
    def id(self) -> str:
        """The same for the same measurement, whatever the suspects are."""
        named = "\n".join((self.kind, self.target, self.src, self.dst, *self.hops))
        return sha256(named.encode()).hexdigest()[:12]

    @property
    def is_judged_by_rows(self) -> bool:
        """Whether `probe` rows of its path answer it."""
        return self.kind == "probe" and self.rate > 0

    @property
    def positive(self) -> str:
        """Meaning of a positive outcome, as a clause."""
        if self.kind == "probe":
            return "packets are lost" if self.rate else "answers are late"
        words = {"link_test": "errors or losses on the link", "benchmark": "the benchmark fails"}
        return words.get(self.kind, "the failures stop while it is drained")

    @property
    def text(self) -> str:
        """Instruction, as one sentence."""
        if self.kind == "probe":
            over = f" over {', '.join(self.hops)}" if self.hops else ""
            return f"Send {self.packets} probes from {self.src} to {self.dst}{over}."
        return {
            "link_test": f"Test {self.target} alone, from one end to the other.",
            "benchmark": f"Run the validation benchmarks on {self.target}.",
        }.get(self.kind, f"Drain {self.target} and watch whether the failures stop.")

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "tests": list(self.tests), "hops": list(self.hops), "id": self.id}


def question_from(body: Mapping[str, Any]) -> Question:
    """Reads `Question.as_json`."""
    known = {name: value for name, value in body.items() if name != "id"}
    return Question(**{**known, "tests": tuple(body["tests"]), "hops": tuple(body["hops"])})


@dataclass(frozen=True, slots=True)
class Path:
    """A path that probes can take, as earlier probes reported it."""

    src: str
    dst: str
    hops: tuple[str, ...]


def priced(prices: Mapping[str, tuple[float, float]]) -> dict[QuestionKind, Costs]:
    """`COSTS` with other minutes and costs."""
    return {
        kind: replace(one, minutes=prices[kind][0], cost=prices[kind][1]) if kind in prices else one
        for kind, one in COSTS.items()
    }


def candidates(
    suspects: Iterable[str],
    paths: Iterable[Path],
    nodes: Mapping[str, str],
    rate: float | None,
    costs: Mapping[QuestionKind, Costs] = COSTS,
) -> list[Question]:
    """The measurements that say something about the suspects.

    Of paths that test the same suspects the shortest; a test of each link; a benchmark of each node (`nodes`: the node
    of a suspect); draining each suspect. `rate`: share of packets that the fault loses, None where unknown, 0 where it
    delays them.
    """
    names = sorted(one for one in suspects if one != NONE)
    shortest: dict[tuple[str, ...], Path] = {}
    for path in sorted(set(paths), key=lambda one: (len(one.hops), one.src, one.dst, one.hops)):
        passed = {path.src, path.dst, *path.hops}
        tested = tuple(name for name in names if name in passed)
        if tested:
            shortest.setdefault(tested, path)
    found = [probe(path, tested, rate, costs) for tested, path in shortest.items()]
    for name in names:
        kind, _, rest = name.partition("/")
        if kind == "link":
            ends = rest.split("~")
            tested = (name, *(one for one in names if one.partition("/")[2] in ends))
            found.append(_costed(costs, "link_test", name, tuple(sorted(tested))))
        found.append(_costed(costs, "drain", name, (name,)))
    for node in sorted(set(nodes.values())):
        found.append(_costed(costs, "benchmark", node, tuple(one for one in names if nodes.get(one) == node)))
    return found


def _costed(
    costs: Mapping[QuestionKind, Costs], kind: QuestionKind, target: str, tests: tuple[str, ...]
) -> Question:
    one = costs[kind]
    return Question(kind, target, tests, one.detection, one.false_alarm, one.minutes, one.cost)


def probe(
    path: Path,
    tests: tuple[str, ...],
    rate: float | None,
    costs: Mapping[QuestionKind, Costs] = COSTS,
) -> Question:
    """The probe of a path, with the fewest packets of `PACKETS` that find the fault with 95 %."""
    target, own = f"{path.src} -> {path.dst}", costs["probe"]
    if rate == 0:
        late = LATE_ANSWERS
        return Question(
            "probe", target, tests, late.detection, late.false_alarm, own.minutes, own.cost, path.src, path.dst,
            path.hops, PACKETS[0],
        )  # fmt: skip
    share = ASSUMED_RATE if rate is None else min(1.0, max(BACKGROUND * 10, rate / 2))
    packets = next((n for n in PACKETS if rates(n, share)[0] >= 0.95), PACKETS[-1])
    detection, false_alarm = rates(packets, share)
    minutes = own.minutes + packets / PACKETS_A_MINUTE
    return Question(
        "probe", target, tests, detection, false_alarm, round(minutes, 2), own.cost, path.src, path.dst,
        path.hops, packets, share,
    )  # fmt: skip


def rates(packets: int, share: float) -> tuple[float, float]:
    """Detection and false-alarm rate of `packets` probes of which `lost_for_positive` lost ones are positive.

    Binomial; never better than `COSTS` say, because a probe may take another path than reported.
    """
    best, lost = COSTS["probe"], lost_for_positive(packets)
    return (
        round(min(best.detection, _tail(packets, share, lost)), 4),
        round(max(best.false_alarm, _tail(packets, BACKGROUND, lost)), 4),
    )


def measured(question: Question, sent: int) -> Question:
    """The question with the rates of the probes that were sent."""
    detection, false_alarm = rates(sent, question.rate)
    return replace(question, detection=detection, false_alarm=false_alarm)


def lost_for_positive(packets: int) -> int:
    """The fewest lost packets that happen without a fault in at most 1 % of the measurements."""
    lost = 1
    while _tail(packets, BACKGROUND, lost) > COSTS["probe"].false_alarm:
        lost += 1
    return lost


def _tail(trials: int, share: float, least: int) -> float:
    """P(at least `least` of `trials`)."""
    if share >= 1:
        return 1.0
    fewer = (math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(least))
    return max(0.0, 1 - math.fsum(fewer))


# Beliefs
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Group:
    """Suspects that one verdict cannot tell apart, with the probability that one of them is at fault."""

    components: tuple[str, ...]
    score: float | None


def prior(groups: Iterable[Group]) -> dict[str, float]:
    """Beliefs before any answer: one component is at fault, or none.

    Each group weighs its odds, split evenly among its members, `NONE` weighs 1: the probabilities of independent groups
    given that at most one holds.
    """
    weights: dict[str, float] = {}
    for group in groups:
        score = min(0.99, max(0.01, UNCALIBRATED if group.score is None else group.score))
        for name in group.components:
            weights[name] = weights.get(name, 0.0) + score / (1 - score) / len(group.components)
    likeliest = dict(sorted(weights.items(), key=lambda one: (-one[1], one[0]))[:MOST_SUSPECTS])
    return _normal({**likeliest, NONE: 1.0 + sum(weights.values()) - sum(likeliest.values())})


def _normal(weights: Mapping[str, float]) -> dict[str, float]:
    total = math.fsum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def updated(beliefs: Beliefs, question: Question, outcome: Outcome) -> dict[str, float]:
    """Beliefs after an answer; an unclear one changes nothing."""
    if outcome == "unclear":
        return dict(beliefs)
    d, f = question.detection, question.false_alarm
    inside, outside = (d, f) if outcome == "positive" else (1 - d, 1 - f)
    return _normal({name: p * (inside if name in question.tests else outside) for name, p in beliefs.items()})


def entropy(beliefs: Beliefs) -> float:
    """Bits."""
    return -math.fsum(p * math.log2(p) for p in beliefs.values() if p > 0)


def information(beliefs: Beliefs, question: Question) -> float:
    """Expected entropy reduction by the answer, in bits."""
    q = math.fsum(beliefs.get(name, 0.0) for name in question.tests)
    d, f = question.detection, question.false_alarm
    return max(0.0, _binary(q * d + (1 - q) * f) - q * _binary(d) - (1 - q) * _binary(f))


def _binary(x: float) -> float:
    return 0.0 if x <= 0 or x >= 1 else -x * math.log2(x) - (1 - x) * math.log2(1 - x)


def leading(beliefs: Beliefs) -> tuple[str, float]:
    """The most likely suspect and its probability; `NONE` only where there is no other."""
    named = [(p, name) for name, p in beliefs.items() if name != NONE]
    p, name = max(named, key=lambda one: (one[0], one[1]), default=(beliefs.get(NONE, 1.0), NONE))
    return name, p


def remaining(beliefs: Beliefs) -> list[str]:
    """Suspects that are not ruled out."""
    named = {name: p for name, p in beliefs.items() if name != NONE and p > 0}
    top = max(named.values(), default=0.0)
    return [name for name, p in named.items() if p * RULED_OUT >= top]


def decisive(beliefs: Beliefs, question: Question) -> float:
    """Part of the expected information that tells the remaining suspects apart, in bits; all of it where at most one
    remains."""
    left = {name: beliefs[name] for name in remaining(beliefs)}
    if len(left) < 2:
        return information(beliefs, question)
    return math.fsum(left.values()) * information(_normal(left), question)


def is_settled(beliefs: Beliefs) -> bool:
    """Whether there is nothing to ask: at most one suspect, or one that is likely enough."""
    return len(beliefs) <= 2 or max(beliefs.values()) >= SETTLED


@dataclass(frozen=True, slots=True)
class Ranked:
    """A question with the bits that are `decisive`, and bits per minute (minutes plus cost)."""

    question: Question
    bits: float

    @property
    def rate(self) -> float:
        return self.bits / (self.question.minutes + self.question.cost)


def ranked(beliefs: Beliefs, questions: Iterable[Question]) -> list[Ranked]:
    """By bits per minute, the best first; without those of less than `LEAST_BITS`."""
    found = [Ranked(one, decisive(beliefs, one)) for one in questions]
    worth = [one for one in found if one.bits >= LEAST_BITS]
    return sorted(worth, key=lambda one: (-one.rate, KINDS.index(one.question.kind), one.question.id))


# Requests and answers
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RequestedProbe:
    """A probe that agents are asked for, from `at` until `until`."""

    question: Question
    at: datetime
    until: datetime
    by: str

    def as_json(self) -> dict[str, Any]:
        return {
            "question": self.question.as_json(),
            "at": rfc3339(self.at),
            "until": rfc3339(self.until),
            "by": self.by,
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """`at` is when it was measured; `by` a person, a key or `telemetry`."""

    question: Question
    outcome: Outcome
    at: datetime
    by: str

    def as_json(self) -> dict[str, Any]:
        return {
            "question": self.question.as_json(),
            "outcome": self.outcome,
            "at": rfc3339(self.at),
            "by": self.by,
        }


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Questions of an incident and their answers, oldest first; `ruled_out` are suspects that answers took from its
    cause."""

    requested: tuple[RequestedProbe, ...] = ()
    answers: tuple[Answer, ...] = ()
    ruled_out: tuple[str, ...] = ()

    def counted(self) -> list[Answer]:
        """The answers that beliefs rest on: of each question the first of each outcome, since an error that a
        measurement makes it makes again."""
        return list({(one.question.id, one.outcome): one for one in reversed(self.answers)}.values())

    def outcomes(self, question: str) -> frozenset[Outcome]:
        return frozenset(one.outcome for one in self.answers if one.question.id == question)

    def is_answered(self, question: str) -> bool:
        """Whether its answer is known: not if it was unclear or contradicted."""
        return len(self.outcomes(question) - {"unclear"}) == 1

    def pending(self, now: datetime) -> list[RequestedProbe]:
        """Probes that agents are still to make."""
        return [one for one in self.requested if now < one.until and not self.answered_since(one)]

    def answered_since(self, request: RequestedProbe) -> bool:
        return any(one.question.id == request.question.id and one.at >= request.at for one in self.answers)

    def as_json(self) -> dict[str, Any]:
        return {
            "requested": [one.as_json() for one in self.requested],
            "answers": [one.as_json() for one in self.answers],
            "ruled_out": list(self.ruled_out),
        }


def dialogue_from(body: Mapping[str, Any]) -> Dialogue:
    """Reads `Dialogue.as_json`."""
    return Dialogue(
        requested=tuple(
            RequestedProbe(
                question_from(one["question"]),
                parse_rfc3339(one["at"]),
                parse_rfc3339(one["until"]),
                one["by"],
            )
            for one in body["requested"]
        ),
        answers=tuple(
            Answer(question_from(one["question"]), one["outcome"], parse_rfc3339(one["at"]), one["by"])
            for one in body["answers"]
        ),
        ruled_out=tuple(body["ruled_out"]),
    )


def beliefs_of(groups: Sequence[Group], answers: Iterable[Answer]) -> dict[str, float]:
    """Beliefs after the answers."""
    beliefs = prior(groups)
    for one in answers:
        beliefs = updated(beliefs, one.question, one.outcome)
    return beliefs
