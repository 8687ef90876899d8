"""A finding (`finding.reported`): a suspect of one run that is worth an incident; the incident that it joins or
opens, and that incident's title, verdict and severity. Pure policy, applied by the follower.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from incidents.domain.incident.alerts import Explanation, Links, explain, explains
from incidents.domain.incident.outcome import has_blamed
from incidents.domain.incident.state import FAILS, Incident, Shown
from incidents.domain.routing.rules import Subject
from incidents.domain.values import Severity, optional_time, parse_rfc3339, rfc3339

# Finding
# ----------------------------------------------------------------------------------------------------------
FINDING_KEY: Final = "finding:"
"""Beginning of the dedup key of an incident that a finding opened."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`score` in [0, 1] or None; `failure_rate` a share in [0, 1] or None; times in data time.

    One finding is one component of one run: that pair is its identity. `phrase` holds `{}` for the failure rate, or
    says all in words. A `forecast` is of what has not failed yet.
    """

    run: str
    schedule: str | None
    analyzer: str
    version: str
    params: Mapping[str, Any]
    region: str
    window_start: datetime
    window_end: datetime
    component: str
    ambiguous_with: tuple[str, ...]
    score: float | None
    failure_rate: float | None
    summary: str
    sure: bool
    first_failure: datetime | None
    last_failure: datetime | None
    evidence: tuple[Mapping[str, Any], ...]
    phrase: str = FAILS
    forecast: bool = False
    indicator: str = ""
    path: tuple[str, ...] = ()

    @property
    def cause(self) -> frozenset[str]:
        """The component and those that the data cannot tell apart from it."""
        return frozenset((self.component, *self.ambiguous_with))

    @property
    def failures_end(self) -> datetime:
        """No failure that this finding rests on is later. Without the analyzer's word: the window's end."""
        return self.last_failure or self.window_end

    @property
    def dedup_key(self) -> str:
        """One open incident for one blamed component of a region."""
        return f"{FINDING_KEY}{self.region}:{self.component}"

    def reference(self) -> dict[str, Any]:
        """Reference in an incident's events; the whole finding stays in the run's stream."""
        return {
            "run": self.run,
            "schedule": self.schedule,
            "analyzer": self.analyzer,
            "version": self.version,
            "region": self.region,
            "window": {"start": rfc3339(self.window_start), "end": rfc3339(self.window_end)},
            "component": self.component,
            "ambiguous_with": list(self.ambiguous_with),
            "score": self.score,
            "failure_rate": self.failure_rate,
            "phrase": self.phrase,
            "forecast": self.forecast,
            "indicator": self.indicator,
            "path": list(self.path),
            "summary": self.summary,
            "sure": self.sure,
            "first_failure": None if self.first_failure is None else rfc3339(self.first_failure),
            "last_failure": None if self.last_failure is None else rfc3339(self.last_failure),
        }


def finding_from(body: Mapping[str, Any]) -> Finding:
    """Reads the body of a `finding.reported` event."""
    suspect = body["suspect"]
    estimate = suspect.get("estimate")
    return Finding(
        run=body["run"],
        schedule=body["schedule"],
        analyzer=body["analyzer"],
        version=body["version"],
        params=body["params"],
        region=body["region"],
        window_start=parse_rfc3339(body["window"]["start"]),
        window_end=parse_rfc3339(body["window"]["end"]),
        component=suspect["component"],
        ambiguous_with=tuple(sorted(suspect.get("ambiguous_with") or ())),
        score=suspect.get("score"),
        failure_rate=None if estimate is None else estimate["failure_rate"],
        phrase=suspect.get("phrase") or (estimate or {}).get("phrase", FAILS),
        forecast=bool(suspect.get("forecast")),
        indicator=suspect.get("indicator") or "",
        path=tuple(suspect.get("path") or ()),
        summary=suspect.get("summary") or "",
        sure=bool(suspect.get("sure")),
        first_failure=optional_time(suspect.get("first_failure")),
        last_failure=optional_time(suspect.get("last_failure")),
        evidence=tuple(body.get("evidence") or ()),
    )


# Placement
# ----------------------------------------------------------------------------------------------------------
WINDOWS_WATCHED: Final = 3
WINDOWS_NEEDED: Final = 2

SCORE_STEP: Final = 0.05
"""A score that moved by this much since evidence was attached makes new evidence worth showing."""
EVIDENCE_EVERY: Final = timedelta(hours=1)
"""In data time: after so long, or after a whole window if that is longer, new evidence is worth showing whatever the
score."""


@dataclass(frozen=True, slots=True)
class ScheduleWindow:
    """Causes blamed by one run of a schedule (component and its ambiguous group), one for each suspect."""

    start: datetime
    end: datetime
    causes: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """Tie by topology between a finding and an incident of another component (`join_of`).

    `deeper`: the finding names what the incident's component rests on, or a part of it, and becomes the cause. `how` is
    a sentence without its full stop.
    """

    deeper: bool
    how: str


@dataclass(frozen=True, slots=True)
class JoinOpen:
    """`relation` is None where finding and incident share their cause."""

    incident: Incident
    relation: Relation | None = None


@dataclass(frozen=True, slots=True)
class RecordOnResolved:
    incident: Incident


@dataclass(frozen=True, slots=True)
class OpenNew:
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    why: str


Placement = JoinOpen | RecordOnResolved | OpenNew | Wait


def place(
    finding: Finding,
    incidents: Iterable[Incident],
    windows: Sequence[ScheduleWindow],
    kinds: Collection[str] | None = None,
) -> Placement:
    """Placement of a finding.

    `incidents` are those whose cause meets the finding's, open and resolved; `windows` the recorded windows
    of the finding's schedule, this one included, in any order; `kinds` the telemetry that it rests on, None where that
    is not known.
    """
    same = [i for i in incidents if i.merged_into is None and _shares_cause(i, finding)]
    open_ones = [i for i in same if i.state != "resolved"]
    if open_ones:
        return JoinOpen(min(open_ones, key=lambda i: (_distance(i, finding), i.number)))
    resolved = max(same, key=lambda i: (_resolved_at(i), i.number), default=None)
    if resolved is not None and known_until(resolved, finding.region, kinds) >= finding.failures_end:
        return RecordOnResolved(resolved)
    return _open_or_wait(finding, windows)


def _open_or_wait(finding: Finding, windows: Sequence[ScheduleWindow]) -> Placement:
    if finding.sure:
        return OpenNew(f"opened immediately ({'forecast' if finding.forecast else 'high confidence'})")
    if finding.schedule is None:
        return Wait("pending: a single run opens an incident only at high confidence")
    watched = consecutive(windows, finding.window_end)
    blamed = sum(any(cause & finding.cause for cause in window.causes) for window in watched)
    if blamed >= WINDOWS_NEEDED:
        return OpenNew(f"opened after {blamed} of the last {len(watched)} windows")
    return Wait(f"pending: {blamed} of {WINDOWS_NEEDED} required windows (of {WINDOWS_WATCHED} consecutive)")


def consecutive(windows: Iterable[ScheduleWindow], end: datetime) -> list[ScheduleWindow]:
    """The latest windows of a schedule up to `end`, newest first: at most three, without a hole between them.

    A window that starts after its predecessor ended leaves a hole: the schedule was paused, or runs failed.
    """
    chain: list[ScheduleWindow] = []
    for window in sorted((w for w in windows if w.end <= end), key=lambda w: w.end, reverse=True):
        if len(chain) == WINDOWS_WATCHED or (chain and window.end < chain[-1].start):
            break
        chain.append(window)
    return chain


def _shares_cause(incident: Incident, finding: Finding) -> bool:
    same_region = incident.region is None or incident.region == finding.region
    return same_region and bool(incident.covers & finding.cause)


def names_cause(incident: Incident, finding: Finding) -> bool:
    """Whether one names the other's component: more than groups that merely meet.

    Only such a finding may change what the incident says.
    """
    return (
        incident.component is None
        or incident.component in finding.cause
        or finding.component in incident.named
    )


def is_beside(incident: Incident, finding: Finding) -> bool:
    """Whether the finding's run named the incident's component itself: its other suspects say less of it."""
    own = incident.opinions.get(finding.analyzer)
    if own is None or own.run != finding.run or own.stance != "blames":
        return False
    return own.component == incident.component != finding.component


def _distance(incident: Incident, finding: Finding) -> int:
    """0: the same component; 1: one names the other's; 2: the groups merely meet; 3: it is of a merged incident."""
    if incident.component == finding.component:
        return 0
    if names_cause(incident, finding):
        return 1
    return 2 if incident.cause & finding.cause else 3


def _resolved_at(incident: Incident) -> datetime:
    assert incident.resolved_at is not None
    return incident.resolved_at


def feed_of(kind: str, region: str) -> str:
    """Key of the telemetry of one kind from one region in `Incident.known_until`."""
    return f"{kind}@{region}"


def known_until(resolved: Incident, region: str, kinds: Collection[str] | None) -> datetime:
    """The data time up to which whoever resolved the incident could know of failures: what failed later is news.

    That is the moment of the resolution where telemetry is live, and as far as it had come where it was behind: of
    several kinds the one furthest behind counts, of kinds that are not known all that were.
    """
    wanted = None if kinds is None else {feed_of(kind, region) for kind in kinds}
    behind = [
        at
        for feed, at in resolved.known_until.items()
        if (feed in wanted if wanted is not None else feed.endswith(f"@{region}"))
    ]
    return min([_resolved_at(resolved), *behind])


def cause_after(
    incident: Incident, finding: Finding, relation: Relation | None = None
) -> tuple[str | None, tuple[str, ...]]:
    """The incident's component and ambiguous group once `finding` has joined.

    The component stays as long as the finding allows it; a finding that names one of the group instead
    narrows the cause; a finding whose group merely meets the incident's changes nothing. The group never grows:
    what one window told apart stays apart when a later one, with less to go on, cannot. Else a fading failure
    would take in a stranger, and hide the incident that this one deserves when it fails itself.
    """
    if incident.component is None or (relation is not None and relation.deeper):
        return finding.component, finding.ambiguous_with
    left = finding.cause & incident.cause
    if incident.component in left:
        return incident.component, tuple(sorted(left - {incident.component}))
    if finding.component in left:
        return finding.component, tuple(sorted(left - {finding.component}))
    return incident.component, incident.ambiguous_with


def related_by(incident: Incident, finding: Finding, relation: Relation | None) -> dict[str, str]:
    """Additions of a finding to `Incident.related`: its own components, or those that it takes the place of."""
    if relation is None:
        return {}
    names = incident.cause - finding.cause if relation.deeper else finding.cause
    return dict.fromkeys(sorted(names), relation.how)


def worth_showing(shown: Shown | None, finding: Finding) -> bool:
    """Whether a finding's evidence is attached or only counted: 288 copies a day help nobody."""
    # A window is much like the one before it while they overlap.
    after = max(EVIDENCE_EVERY, finding.window_end - finding.window_start)
    if shown is None or finding.window_end - shown.window_end >= after:
        return True
    if finding.score is None or shown.score is None:
        return finding.score is not shown.score
    return abs(finding.score - shown.score) >= SCORE_STEP


# Findings about one fault under different names: a rank, its network card, its node
# ----------------------------------------------------------------------------------------------------------
# A finding that would open an incident joins an open one instead if the topology ties both components together and
# other analyzers blame the incident for failures that began about the same time. Conditions against a wrong join:
#
# - The finding's analyzer never named the incident's cause, nor does the same run: an analyzer that names both
#   components tells two faults apart.
# - A part and its whole are one step apart; what rests on the cause by a dependency is two steps away at most.
#
# The cause is the component that others depend on; of a part and its whole it is the part, as the whole is what an
# analyzer names that sees no parts. It is the whole where several parts of it are blamed.
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
    distinguished = own is not None and has_blamed(own) and bool(own.cause & incident.cause)
    if distinguished or any(cause & incident.cause for cause in beside):
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
    """Shortest explanation of one of `names` by one of `causes`; None beyond what may be one fault."""
    found = (explain(name, causes, links, MOST_STEPS) for name in sorted(names))
    ties = [one for one in found if one is not None and (one.hops == 1 or not one.contained)]
    return min(ties, key=lambda one: one.hops, default=None)


# Routing, severity, title and verdict
# ----------------------------------------------------------------------------------------------------------
def subject_of(finding: Finding, at: datetime) -> Subject:
    """Subject for routes, of a finding that was recorded at `at`."""
    return Subject(
        component=finding.component,
        analyzer=finding.analyzer,
        confidence=finding.score,
        severity=severity_of(finding),
        at=at,
    )


class Rated(Protocol):
    """Fields of a finding that decide its severity."""

    @property
    def forecast(self) -> bool: ...
    @property
    def failure_rate(self) -> float | None: ...
    @property
    def sure(self) -> bool: ...
    @property
    def score(self) -> float | None: ...


def severity_of(finding: Rated) -> Severity:
    """critical from 20 % of what depends on the component failing, error from 2 %, else warning.

    Without an estimate: error when the analyzer is sure, else warning. A score under one half lowers it one
    step, never under warning. info for a forecast: nothing has failed.
    """
    if finding.forecast:
        return "info"
    rate = finding.failure_rate
    if rate is None:
        severity: Severity = "error" if finding.sure else "warning"
    else:
        severity = "critical" if rate >= 0.20 else "error" if rate >= 0.02 else "warning"
    if finding.score is not None and finding.score < 0.5:
        severity = {"critical": "error"}.get(severity, "warning")  # type: ignore[assignment]
    return severity


class Blame(Protocol):
    """Basis of a title and a verdict: a finding, or an analyzer's opinion of an incident."""

    @property
    def analyzer(self) -> str: ...
    @property
    def component(self) -> str | None: ...
    @property
    def ambiguous_with(self) -> tuple[str, ...]: ...
    @property
    def failure_rate(self) -> float | None: ...
    @property
    def phrase(self) -> str: ...


def title_of(blame: Blame) -> str:
    if "{}" not in blame.phrase:
        return f"{blame.component} {blame.phrase}"[:300]
    if blame.failure_rate is None:
        return f"{blame.component} is suspected by {blame.analyzer}"[:300]
    phrase = blame.phrase.replace("{}", percent(blame.failure_rate), 1)
    return f"{blame.component} {phrase}"[:300]


def verdict_of(
    blame: Blame, probability: float | None, agreeing: Sequence[str] = (), dissenting: Sequence[str] = ()
) -> str:
    """One sentence that a person on call understands; `agreeing` are the analyzers that say so, `dissenting` those that
    judged the component, did not name it and so lowered the probability."""
    likely = "" if probability is None else f", {percent(probability)} likely at fault"
    together = ""
    if len(agreeing) > 1:
        names = f"{', '.join(agreeing[:-1])} and {agreeing[-1]}"
        together = f" as {names} agree" if likely else f"; {names} agree"
    if dissenting and likely:
        together += f", lowered because {' and '.join(dissenting)} judged it without naming it"
    sentence = f"{title_of(blame)}{likely}{together}"
    if blame.ambiguous_with:
        shown = ", ".join(blame.ambiguous_with[:5])
        more = f" and {len(blame.ambiguous_with) - 5} more" if len(blame.ambiguous_with) > 5 else ""
        sentence += f"; indistinguishable in the data from {shown}{more}"
    return sentence + "."


def percent(share: float) -> str:
    """Two significant digits under 10 %, whole numbers above, and never a false 0 or 100."""
    value = share * 100
    if 0 < value < 0.1:
        return "under 0.1 %"
    if 99 < value < 100:
        return "over 99 %"
    return f"{value:.1f} %" if value < 10 and value != int(value) else f"{value:.0f} %"
