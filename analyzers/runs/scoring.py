"""Accuracy of verdicts, measured against causes that people confirmed. Pure.

`score(verdicts, causes)` counts faults, not windows: a blame that lasts over many windows is one blame. A blame counts
from the window in which an incident would have opened for it: at once when the analyzer was sure, else when enough of
the last few windows in a row name it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Literal

from analyzers.builtin.stats.probability import wilson

Outcome = Literal["right", "wrong", "unconfirmed"]


@dataclass(frozen=True, slots=True)
class Named:
    """A suspect: all names that it stands for (component first), its score, and whether one window is enough."""

    names: tuple[str, ...]
    score: float | None = None
    sure: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdict of an analyzer on one window of a region. `confirmed`: the confirmed causes that the window held."""

    region: str
    start: datetime
    end: datetime
    suspects: tuple[Named, ...] = ()
    confirmed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Cause:
    """A resolved incident: what was at fault (None: nothing), when it failed, when somebody first reported it.

    `names` are the components that the incident was about, whatever was confirmed. A region of None fits any.
    """

    incident: int
    component: str | None
    names: frozenset[str]
    region: str | None
    since: datetime
    until: datetime
    reported_at: datetime | None


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule for a blame that counts: `needed` of `watched` consecutive windows, unless the analyzer is sure."""

    needed: int = 2
    watched: int = 3


@dataclass(slots=True)
class Blame:
    """One blamed component over windows that overlap or touch. `counted_at` is the end of the window from which it
    counts, None if it never did; times are data time."""

    names: frozenset[str]
    component: str
    region: str
    start: datetime
    end: datetime
    windows: int = 1
    score: float | None = None
    counted_at: datetime | None = None
    recent: list[bool] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scored:
    """A blame with the incident that it is judged by. `lead` is how long before the first report it counted, below
    zero if later; None if it was not right or nobody else reported."""

    blame: Blame
    outcome: Outcome
    incident: int | None
    first: bool
    alone: bool
    lead: timedelta | None


@dataclass(frozen=True, slots=True)
class Score:
    """`missed` are incidents with a component at fault that the windows held and that no blame names."""

    windows: int
    scored: tuple[Scored, ...]
    missed: tuple[Cause, ...]
    passing: int
    """Blames that never counted: no incident would have opened for them."""

    def count(self, outcome: Outcome) -> int:
        return sum(one.outcome == outcome for one in self.scored)

    @property
    def found_first(self) -> int:
        return sum(one.first for one in self.scored)

    @property
    def alone(self) -> int:
        return sum(one.alone for one in self.scored)

    @property
    def caught(self) -> int:
        """Incidents whose cause a blame names: several blames of one fault find it once."""
        return len({one.incident for one in self.scored if one.outcome == "right"})

    @property
    def precision(self) -> Share:
        right = self.count("right")
        return Share(right, right + self.count("wrong"))

    @property
    def recall(self) -> Share:
        return Share(self.caught, self.caught + len(self.missed))

    @property
    def median_lead(self) -> timedelta | None:
        leads = [one.lead.total_seconds() for one in self.scored if one.lead is not None]
        return timedelta(seconds=median(leads)) if leads else None


@dataclass(frozen=True, slots=True)
class Share:
    """`hits` of `trials`, with the 95 % interval of Wilson (1927)."""

    hits: int
    trials: int

    @property
    def value(self) -> float | None:
        return self.hits / self.trials if self.trials else None

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.hits, self.trials)


def score(verdicts: Iterable[Judged], causes: Sequence[Cause], rule: Rule | None = None) -> Score:
    """Blames of all windows against the causes that were confirmed.

    A blame is `right` if an incident about that time was resolved with a component that it names; else `wrong` if
    an incident about one of its components was resolved otherwise, also with nothing; else `unconfirmed`. "About that
    time": the span of its windows meets the span in which the incident's cause failed.
    """
    judged = sorted(verdicts, key=lambda one: (one.region, one.end, one.start))
    blames = _blames(judged, rule or Rule())
    counted = [one for one in blames if one.counted_at is not None]
    scored = tuple(_scored(one, causes) for one in counted)
    return Score(len(judged), scored, tuple(_missed(judged, blames, causes)), len(blames) - len(counted))


def _blames(judged: Sequence[Judged], rule: Rule) -> list[Blame]:
    """Suspects of successive windows made into blames: those that share a name, without a hole between them."""
    done: list[Blame] = []
    running: list[Blame] = []
    region = None
    for window in judged:
        over = [one for one in running if window.region != region or window.start > one.end]
        done += over
        running = [one for one in running if one not in over]
        region = window.region
        for one in running:
            one.recent = [*one.recent, False][-rule.watched :]
        for named in window.suspects:
            _assign(running, window, named, rule)
    return sorted(done + running, key=lambda one: (one.start, one.component))


def _assign(running: list[Blame], window: Judged, named: Named, rule: Rule) -> None:
    names = frozenset(named.names)
    blame = next((one for one in running if one.names & names), None)
    if blame is None:
        blame = Blame(names, named.names[0], window.region, window.start, window.end, recent=[True])
        running.append(blame)
    elif not blame.recent[-1]:  # two suspects of one window may belong to one blame
        blame.windows += 1
        blame.recent[-1] = True
    # What one window told apart stays apart, as on an incident: the group narrows and never grows.
    blame.names &= frozenset(named.names)
    if blame.component not in blame.names:
        blame.component = next(name for name in named.names if name in blame.names)
    blame.end = window.end
    blame.score = named.score if named.score is not None else blame.score
    if blame.counted_at is None and (named.sure or sum(blame.recent) >= rule.needed):
        blame.counted_at = window.end


def _scored(blame: Blame, causes: Sequence[Cause]) -> Scored:
    near = [one for one in causes if _meet(blame, one)]
    confirmed = [one for one in near if one.component in blame.names]
    if confirmed:
        cause = min(confirmed, key=lambda one: (abs(one.since - blame.start), one.incident))
        assert blame.counted_at is not None
        reported = cause.reported_at
        lead = None if reported is None else reported - blame.counted_at
        first = lead is None or lead > timedelta(0)
        return Scored(blame, "right", cause.incident, first, lead is None, lead)
    about = [one for one in near if one.names & blame.names]
    incident = min((one.incident for one in about), default=None)
    return Scored(blame, "wrong" if about else "unconfirmed", incident, False, False, None)


def _meet(blame: Blame, cause: Cause) -> bool:
    same_region = cause.region in (None, blame.region)
    return same_region and blame.start <= cause.until and cause.since <= blame.end


def _missed(judged: Sequence[Judged], blames: Sequence[Blame], causes: Sequence[Cause]) -> Iterable[Cause]:
    for cause in causes:
        named = any(_meet(one, cause) and cause.component in one.names for one in blames)
        looked = any(
            cause.component in one.confirmed
            and cause.region in (None, one.region)
            and one.start <= cause.until
            and cause.since <= one.end
            for one in judged
        )
        if cause.component is not None and looked and not named:
            yield cause
