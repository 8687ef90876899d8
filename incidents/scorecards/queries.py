"""Score-cards: how often each analyzer was right about incidents that people have resolved.

Counted from `incident_analyzer_outcome`, which is rebuilt from the log: one row a resolved incident and analyzer
(`incidents.domain.incident.outcome` says what right, wrong and missed mean). The latest resolution of an
incident counts; one that was reopened counts nowhere until it is resolved again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from statistics import median
from typing import Any

from django.db.models import Q

from analyzers.queries import Share
from incidents.domain.incident.dissent import DisputedBlame
from incidents.domain.incident.outcome import AnalyzerOutcome, analyzer_outcomes, has_blamed
from incidents.domain.incident.state import Incident, fused, opinion_from
from incidents.domain.values import parse_rfc3339
from incidents.incident.models import AnalyzerOutcomeRow, IncidentRow

MOST_BLAMES = 500
"""The record of dissent is the newest so many blames of resolved incidents."""


@dataclass(frozen=True, slots=True)
class Card:
    """The record of one analyzer, of one version of it or of all (`version` None).

    `right` and `wrong` count resolved incidents that it blamed, `missed` those whose cause it judged and did not name,
    `first` those right before any person or alert, `alone` those that nobody else reported at all, `matched` those
    that somebody else reported too. `waiting` are blamed incidents that nobody has resolved yet.
    """

    analyzer: str
    version: str | None
    right: int = 0
    wrong: int = 0
    missed: int = 0
    first: int = 0
    alone: int = 0
    waiting: int = 0
    median_lead: timedelta | None = None

    @property
    def matched(self) -> int:
        return self.right - self.alone

    @property
    def resolved(self) -> int:
        """Resolved incidents that it blamed."""
        return self.right + self.wrong

    @property
    def precision(self) -> Share:
        return Share(self.right, self.right + self.wrong)

    @property
    def recall(self) -> Share:
        return Share(self.right, self.right + self.missed)

    @property
    def sentence(self) -> str:
        """`right in 41 of 44 resolved incidents`, or that there is none yet."""
        if self.resolved == 0:
            return "no resolved incident yet"
        return (
            f"right in {self.right} of {self.resolved} resolved incident{'' if self.resolved == 1 else 's'}"
        )

    def as_json(self) -> dict[str, Any]:
        lead = self.median_lead
        return {
            "analyzer": self.analyzer,
            "version": self.version,
            "resolved": self.resolved,
            "right": self.right,
            "wrong": self.wrong,
            "missed": self.missed,
            "matched": self.matched,
            "found_first": self.first,
            "found_alone": self.alone,
            "waiting": self.waiting,
            "median_lead_seconds": None if lead is None else lead.total_seconds(),
            "precision": share_json(self.precision),
            "recall": share_json(self.recall),
            "sentence": self.sentence,
        }


def share_json(share: Share) -> dict[str, Any]:
    low, high = share.interval
    return {
        "value": None if share.value is None else round(share.value, 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "trials": share.trials,
    }


def scorecard(
    analyzer: str, since: datetime | None = None, until: datetime | None = None, team: str | None = None
) -> Card:
    """The card of one analyzer, over incidents resolved in `[since, until)`, of a team if one is given."""
    rows = list(_rows(since, until, team).filter(analyzer=analyzer))
    return _card(analyzer, None, rows, _waiting([analyzer], team)[analyzer])


def scorecards(
    names: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    team: str | None = None,
    *,
    waiting: bool = True,
) -> dict[str, Card]:
    """By name: the analyzers asked for, and all that have a record; an empty card for one without.

    The blamed incidents that wait are counted only where they are shown: that looks into every open incident.
    """
    by_name: dict[str, list[AnalyzerOutcomeRow]] = {name: [] for name in names}
    for row in _rows(since, until, team):
        by_name.setdefault(row.analyzer, []).append(row)
    open_ = _waiting(list(by_name), team) if waiting else {}
    return {name: _card(name, None, rows, open_.get(name, 0)) for name, rows in sorted(by_name.items())}


def cards_as_of(incidents: Iterable[Incident], since: datetime, until: datetime) -> dict[str, Card]:
    """The cards of all that have a record over those incidents resolved in `[since, until)`, as the states
    given say it: what has been resolved, reopened or blamed since changes nothing.
    """
    by_name: dict[str, list[AnalyzerOutcome]] = {}
    waiting: Counter[str] = Counter()
    for state in incidents:
        if state.state != "resolved":
            waiting.update(one.analyzer for one in state.opinions.values() if has_blamed(one))
        elif state.resolved_at is not None and since <= state.resolved_at < until:
            for one in analyzer_outcomes(state):
                by_name.setdefault(one.analyzer, []).append(one)
    return {name: _card(name, None, found, waiting[name]) for name, found in sorted(by_name.items())}


def by_version(analyzer: str) -> list[Card]:
    """A card for each version that has a record, newest version last."""
    groups: dict[str, list[AnalyzerOutcomeRow]] = {}
    for row in _rows(None, None, None).filter(analyzer=analyzer):
        groups.setdefault(row.analyzer_version, []).append(row)
    return [_card(analyzer, version, groups[version], 0) for version in sorted(groups, key=_version_key)]


def disputed_blames() -> list[DisputedBlame]:
    """Blames of resolved incidents that other analyzers judged without naming the cause, among the newest `MOST_BLAMES`
    by single analyzers: what the weight of a dissent is learnt from."""
    rows = AnalyzerOutcomeRow.objects.filter(outcome__in=("right", "wrong"), score__isnull=False)
    rows = rows.order_by("-incident__resolved_at", "incident", "-score", "analyzer")
    found = []
    for _, blames in groupby(rows.select_related("incident")[:MOST_BLAMES], key=lambda one: one.incident_id):
        first, *others = blames
        opinions = [opinion_from(one) for one in first.incident.opinions.values()]
        dissenters = tuple(sorted(one.analyzer for one in opinions if one.dissents))
        forecast = all(one.forecast for one in opinions if has_blamed(one))
        score = fused(one.score for one in (first, *others))
        if dissenters and not forecast and score is not None:
            kind, right = str(first.component).partition("/")[0], first.outcome == "right"
            found.append(DisputedBlame(kind, score, bool(others), dissenters, right))
    return found


def _rows(since: datetime | None, until: datetime | None, team: str | None) -> Any:
    condition = Q()
    if since is not None:
        condition &= Q(incident__resolved_at__gte=since)
    if until is not None:
        condition &= Q(incident__resolved_at__lt=until)
    if team is not None:
        condition &= Q(incident__team=team)
    return AnalyzerOutcomeRow.objects.filter(condition)


def _waiting(names: Sequence[str], team: str | None) -> dict[str, int]:
    rows = IncidentRow.objects.exclude(state="resolved")
    if team is not None:
        rows = rows.filter(team=team)
    return {name: rows.filter(_blaming(name)).count() for name in names}


def _blaming(name: str) -> Q:
    """Rows on which the last word of an analyzer was a blame, still held or not."""
    held, over = ({name: {"stance": stance}} for stance in ("blames", "no_longer_blames"))
    return Q(opinions__contains=held) | Q(opinions__contains=over)


def _card(
    analyzer: str, version: str | None, rows: Sequence[AnalyzerOutcomeRow | AnalyzerOutcome], waiting: int
) -> Card:
    leads = [row.lead_seconds for row in rows if row.lead_seconds is not None]
    return Card(
        analyzer,
        version,
        right=sum(row.outcome == "right" for row in rows),
        wrong=sum(row.outcome == "wrong" for row in rows),
        missed=sum(row.outcome == "missed" for row in rows),
        first=sum(row.first for row in rows),
        alone=sum(row.alone for row in rows),
        waiting=waiting,
        median_lead=timedelta(seconds=median(leads)) if leads else None,
    )


def _version_key(version: str) -> tuple[tuple[int, int, str], ...]:
    parts = version.split(".")
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def unresolved_incidents(blames: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """By component of each blame of a backtest, the number of the latest unresolved incident of it and its time."""
    found: dict[str, int] = {}
    for blame in blames:
        names = [blame["component"], *blame["ambiguous_with"]]
        start, end = parse_rfc3339(blame["start"]), parse_rfc3339(blame["end"])
        rows = IncidentRow.objects.filter(
            cause__overlap=names, failing_since__lte=end, last_failure__gte=start
        ).exclude(state="resolved")
        if (row := rows.order_by("-number").only("number").first()) is not None:
            found[blame["component"]] = row.number
    return found


def incidents_of(numbers: Collection[int]) -> dict[int, str]:
    """Titles of those incidents, by number."""
    return dict(IncidentRow.objects.filter(number__in=list(numbers)).values_list("number", "title"))
