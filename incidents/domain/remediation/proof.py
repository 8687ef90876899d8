"""Proof of repair: a sequential test of a returned part, valid at every look. Pure.

Two hypotheses about each row of the part after its return: *repaired*, it fails as often as its fleet (p_ok), and *not
repaired*, it fails as often as half of the fault would (p_bad). The ratio of their likelihoods is Wald's (Sequential
tests of statistical hypotheses, Ann. Math. Statist. 16(2), 1945, 117-186): a row of n attempts with f failures has
log L = f log(p_bad / p_ok) + (n - f) log((1 - p_bad) / (1 - p_ok)).

The two directions are kept apart as e-processes: E(repaired) multiplies 1/L, E(not repaired) multiplies L. Each is a
supermartingale if the other hypothesis holds, so by Ville's inequality (Etude critique de la notion de collectif, 1939)
it ever exceeds 1/a with a probability of at most a, however often one looks. Two changes keep that true, since they
only lower the expectation: a factor is at most e (`CAP`), after Huber (A robust version of the probability ratio test,
Ann. Math. Statist. 36(6), 1965), so that no single row decides; and L is raised to 1/phi, phi >= 1, where the failures
of the part came in bursts before the hand-over (Pearson's dispersion, McCullagh and Nelder, Generalized Linear Models,
1989, 4.5).

p_ok is the rate of the fleet, the larger of its history and of the same hour: an outage that hits everybody says
nothing against the part. p_bad is halfway from p_ok to the lower end of the 95 % interval of the rate that the part had
before the hand-over, and at least `LEAST_ODDS` times the odds of p_ok. Sources in which the part did not fail before
the hand-over cannot show that the fault is gone and do not count, unless all are like that: then p_bad is `ASSUMED`
(where the part failed now and then: at least `LEAST_ODDS`), and the proof says so.

A fault that comes and goes breaks the independence of rows, and a healthy spell looks like a repair. So a repair is
proved only after the rows that `spells` demands of the part's own history since the fault began, counted anew where
failures outweigh the rows before them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from analyzers.builtin.stats.probability import wilson
from incidents.domain.remediation.spells import TIMES, Spells, spells
from incidents.domain.values import optional_rfc3339, rfc3339

FALSE_REPAIRED: Final = 0.01
"""Bound of the probability that a part which is not repaired is ever called repaired."""
FALSE_NOT_REPAIRED: Final = 0.01
"""Bound of the probability that a repaired part is ever called not repaired."""
CAP: Final = 1.0
"""Log of the most that one row counts."""
LEAST_ODDS: Final = 3.0
ASSUMED: Final = 0.2
"""Failure rate of a part that is not repaired, where no row before the hand-over shows the fault."""
SEEN: Final = 2.0
"""A source shows the fault if the part failed there so many times as often as the fleet, and at least twice."""
BLOCK: Final = 10
LOWEST, HIGHEST = 1e-4, 0.9
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Counts:
    attempts: int = 0
    failures: int = 0

    @property
    def rate(self) -> float:
        """Failures per attempt, with half a failure and one attempt added; within what the test can use."""
        return min(HIGHEST, max(LOWEST, (self.failures + 0.5) / (self.attempts + 1)))

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval of the rate (Wilson, J. Am. Statist. Assoc. 22, 1927)."""
        return wilson(self.failures, self.attempts)[0]


@dataclass(frozen=True, slots=True)
class Row:
    """Attempts of the part at a time, and how many of them failed."""

    at: datetime
    attempts: int
    failures: int


@dataclass(frozen=True, slots=True)
class Source:
    """Rows of one telemetry kind: of the part before the hand-over and since the return, and of its fleet.

    `fleet` counts the history, `hours` the hours since the return, by their start.
    """

    kind: str
    before: Sequence[Row]
    after: Sequence[Row]
    fleet: Counts
    hours: Mapping[datetime, Counts] = field(default_factory=dict)
    began: datetime | None = None
    """Begin of the fault: rows before it say nothing of its spells. None: before the first row."""

    @property
    def counts_before(self) -> Counts:
        return _total(self.before)

    @property
    def shows_the_fault(self) -> bool:
        before = self.counts_before
        return before.failures >= 2 and before.rate >= SEEN * self.fleet.rate


def _total(rows: Sequence[Row]) -> Counts:
    return Counts(sum(row.attempts for row in rows), sum(row.failures for row in rows))


@dataclass(frozen=True, slots=True)
class Test:
    """Weights of a source's rows: the rate of an unrepaired part and the dispersion."""

    source: Source
    unrepaired: float
    dispersion: float

    def spells(self) -> Spells:
        """Healthy spells before the hand-over; one of all rows where the source does not show the fault."""
        began = self.source.began
        rows = [row for row in self.source.before if began is None or row.at >= began]
        shows = self.source.shows_the_fault
        return spells([shows and row.failures > 0 and self.log_ratio(row) > 0 for row in rows])

    def healthy_at(self, at: datetime) -> float:
        """The rate of the fleet at a time: of its history, or of the hour where that is higher."""
        hour = self.source.hours.get(at.replace(minute=0, second=0, microsecond=0), Counts())
        now = hour.failures / hour.attempts if hour.attempts else 0.0
        return min(HIGHEST, max(self.source.fleet.rate, now))

    def log_ratio(self, row: Row) -> float:
        """Log of the likelihood of a row if the part is not repaired, over that if it is; divided by the dispersion."""
        healthy = self.healthy_at(row.at)
        odds = _odds(self.unrepaired) / _odds(self.source.fleet.rate)
        bad = _rate(_odds(healthy) * odds)
        passed = row.attempts - row.failures
        ratio = row.failures * math.log(bad / healthy) + passed * math.log((1 - bad) / (1 - healthy))
        return ratio / self.dispersion


def _odds(rate: float) -> float:
    return rate / (1 - rate)


def _rate(odds: float) -> float:
    return odds / (1 + odds)


def unrepaired_rate(source: Source) -> float:
    """Halfway from the rate of the fleet to the least that fits the part before the hand-over, at least LEAST_ODDS
    times the odds of the fleet; ASSUMED where the part had no failure there."""
    healthy = source.fleet.rate
    least = _rate(_odds(healthy) * LEAST_ODDS)
    before = source.counts_before
    return max(least, (healthy + before.low) / 2 if before.failures else ASSUMED)


def dispersion(rows: Sequence[Row]) -> float:
    """Dispersion: the variance of the failures of BLOCK rows in a row over that of independent ones, at least 1.

    Pearson's chi-square of the blocks, over its mean and one standard deviation if they did.
    """
    total = _total(rows)
    blocks = [_total(rows[i : i + BLOCK]) for i in range(0, len(rows), BLOCK)]
    if len(blocks) < 2 or not 0 < total.failures < total.attempts:
        return 1.0
    rate = total.failures / total.attempts
    chi = sum(
        (one.failures - one.attempts * rate) ** 2 / (one.attempts * rate * (1 - rate)) for one in blocks
    )
    free = len(blocks) - 1
    return max(1.0, chi / (free + math.sqrt(2 * free)))


@dataclass(slots=True)
class Evidence:
    """Logs of the two e-processes and of the larger of each so far: what was proved once stays proved."""

    repaired: float = 0.0
    not_repaired: float = 0.0

    def add(self, log_ratio: float) -> None:
        """`repaired` grows no further than its bound, which only lowers it: a spell after many healthy rows is seen."""
        self.repaired = min(self.repaired + min(CAP, -log_ratio), math.log(1 / FALSE_REPAIRED))
        self.not_repaired += min(CAP, log_ratio)

    @property
    def verdict(self) -> str:
        if self.repaired >= math.log(1 / FALSE_REPAIRED):
            return "repaired"
        if self.not_repaired >= math.log(1 / FALSE_NOT_REPAIRED):
            return "not_repaired"
        return "unknown"


def judge(sources: Sequence[Source], since: datetime) -> dict[str, Any]:
    """The verdict (`unknown`, `repaired`, `not_repaired`) over all rows since the return, in the order of time, with
    the figures. The first verdict ends the test: rows after it are not looked at."""
    showing = [one for one in sources if one.shows_the_fault]
    assumed = not showing
    tests = [Test(one, unrepaired_rate(one), dispersion(one.before)) for one in showing or sources]
    rows = sorted(
        ((row, place) for place, test in enumerate(tests) for row in test.source.after),
        key=lambda pair: (pair[0].at, pair[1]),
    )
    found_spells = [test.spells() for test in tests]
    left = [one.demanded(FALSE_REPAIRED) for one in found_spells]
    evidence, seen, used = Evidence(), 0, [Counts() for _ in tests]
    last, verdict = None, "unknown"
    for row, place in rows:
        evidence.add(tests[place].log_ratio(row))
        was = used[place]
        used[place] = Counts(was.attempts + row.attempts, was.failures + row.failures)
        seen, last, left[place] = seen + 1, row.at, left[place] - 1
        if evidence.repaired < 0:  # failures in a row: the watch begins again
            left = [one.demanded(FALSE_REPAIRED) for one in found_spells]
        if (verdict := _verdict(evidence, left)) != "unknown":
            break
    found = Counts(sum(one.attempts for one in used), sum(one.failures for one in used))
    needed = None if verdict != "unknown" else _needed(tests, evidence, rows, left)
    return {
        "verdict": verdict,
        "summary": _summary(verdict, found, needed, _assumptions(assumed, found_spells)),
        "rows": seen,
        "attempts": found.attempts,
        "failures": found.failures,
        "for_repaired": round(evidence.repaired, 3),
        "for_not_repaired": round(evidence.not_repaired, 3),
        "bound": round(math.log(1 / FALSE_REPAIRED), 3),
        "needed": needed,
        "since": rfc3339(since),
        "until": optional_rfc3339(last),
        "assumed": assumed,
        "sources": [
            _source_json(test, counts, spells)
            for test, counts, spells in zip(tests, used, found_spells, strict=True)
        ],
    }


def _verdict(evidence: Evidence, left: Sequence[int]) -> str:
    """`left` are the rows that healthy spells still demand of each source before a repair is proved."""
    return "unknown" if evidence.verdict == "repaired" and max(left, default=0) > 0 else evidence.verdict


def _source_json(test: Test, used: Counts, spells: Spells) -> dict[str, Any]:
    before = test.source.counts_before
    return {
        "kind": test.source.kind,
        "attempts": used.attempts,
        "failures": used.failures,
        "before": None if before.attempts == 0 else round(before.failures / before.attempts, 5),
        "fleet": round(test.source.fleet.rate, 5),
        "unrepaired": round(test.unrepaired, 5),
        "dispersion": round(test.dispersion, 2),
        "healthy_spells": len(spells.ended),
        "longest_healthy_spell": spells.longest,
        "rows_demanded": spells.demanded(FALSE_REPAIRED),
    }


def _needed(
    tests: Sequence[Test], evidence: Evidence, rows: Sequence[tuple[Row, int]], left: Sequence[int]
) -> int | None:
    """Rows without a failure that would prove the repair, of the size of those seen (one attempt where none was), at
    least those that are `left`; None without a source."""
    gains = [
        min(CAP, -test.log_ratio(Row(_NEVER, _typical(rows, place), 0))) for place, test in enumerate(tests)
    ]
    usable = [gain for gain in gains if gain > 0]
    if not usable:
        return None
    return max(math.ceil((math.log(1 / FALSE_REPAIRED) - evidence.repaired) / max(usable)), *left)


def _typical(rows: Sequence[tuple[Row, int]], place: int) -> int:
    sizes = sorted(row.attempts for row, where in rows if where == place)
    return sizes[len(sizes) // 2] if sizes else 1


def _assumptions(assumed: bool, found: Sequence[Spells]) -> str:
    """Assumptions of the verdict beside the rows, as the end of a sentence; empty without any."""
    made = []
    if assumed:
        made.append(
            "the rows before the hand-over do not show the fault, so the rate of an unrepaired part is assumed"
        )
    unbounded = max((one.longest for one in found if not one.is_bounded), default=0)
    if unbounded:
        made.append(
            f"healthy for {unbounded} rows while it had the fault; assumed: never for {TIMES} times as many"
        )
    return "".join(f"; {one}" for one in made)


def _summary(verdict: str, found: Counts, needed: int | None, assumptions: str) -> str:
    seen = f"{found.failures} of {found.attempts} attempts failed since the return"
    if verdict == "repaired":
        return f"repaired, {seen}{assumptions}"
    if verdict == "not_repaired":
        return f"not repaired, {seen}{assumptions}"
    if needed is None:
        return "not decided yet: no telemetry about the part or its node"
    rows = f"{needed} more row{'' if needed == 1 else 's'} without a failure would prove it"
    return f"not decided yet: {seen}; {rows}"
