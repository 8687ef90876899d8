"""A file of configuration against the recorded past: what it would have called, whom, and what it would have missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.contrib.auth import get_user_model

from analyzers.queries import Share
from incidents.api.config.analyzer_replay import ReplayedSchedule, replayed_schedules, replayed_versions
from incidents.api.config.views import Catalogs, Change, apply
from incidents.domain.config.yaml import Document
from incidents.domain.configuration_replay import (
    Compared,
    Configuration,
    PastIncident,
    RecordedPast,
    calls_of_findings,
    compare,
    estimate_json,
    usual_answer,
)
from incidents.domain.incident.alerts import is_of_alerts
from incidents.domain.oncall.rotations import Schedule, begun_before
from incidents.domain.past_placement import PastAlert
from incidents.domain.suppression.past import Suppressions, proposed
from incidents.domain.values import UNREADABLE, InvalidValueError, rfc3339
from incidents.escalation.models import EscalationPolicy
from incidents.incident.models import IncidentRow
from incidents.oncall.models import OnCallSchedule
from incidents.oncall.queries import rota
from incidents.routing.replay import Opening, Openings
from incidents.suppression.suppressor import suppressions_as_written
from incidents.teams.models import Membership, routing_table
from ingest.queries import Context

IN_PARTS: Final = 500
AFTERWARDS: Final = timedelta(days=8)
"""Time after the span for which rotas are read: a policy calls for a week at most."""

log = structlog.get_logger("configuration")


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of the figures; None: none. `later_minutes` is of the mean until the right team has an incident."""

    more_calls: int | None = None
    missed: int | None = None
    later_minutes: int | None = None


@dataclass(frozen=True, slots=True)
class ConfigurationReplay:
    """`end` is where reading stopped; `complete` says whether that is the end that was asked for."""

    changes: Sequence[Change]
    start: datetime
    end: datetime
    complete: bool
    compared: Compared
    analyzers: Sequence[ReplayedSchedule]

    @property
    def net_calls(self) -> int:
        of_analyzers = (
            one.compared.calls_after - one.compared.calls_before for one in self.analyzers if one.compared
        )
        return self.compared.calls_after - self.compared.calls_before + sum(of_analyzers)

    @property
    def missed(self) -> int:
        """Incidents that nobody would have been called for, and those that nobody would have known of."""
        unknown = {number for one in self.analyzers if one.compared for number in one.compared.missed}
        return self.compared.missed + len(unknown)

    def exceeded(self, limits: Limits) -> list[str]:
        """The thresholds that the figures are above, in words."""
        found = []
        if limits.more_calls is not None and self.net_calls > limits.more_calls:
            found.append(f"{self.net_calls} more calls than now, allowed are {limits.more_calls}")
        if limits.missed is not None and self.missed > limits.missed:
            found.append(f"{self.missed} incidents missed, allowed are {limits.missed}")
        later = [self.compared.minutes.value]
        later += [one.compared.minutes.value for one in self.analyzers if one.compared]
        if limits.later_minutes is not None and max(later) > limits.later_minutes:
            found.append(f"{max(later):.1f} minutes later on average, allowed are {limits.later_minutes}")
        return found

    def as_json(self) -> dict[str, Any]:
        missed = (
            Share(self.compared.missed, self.compared.real).interval if self.compared.real else (0.0, 1.0)
        )
        return {
            "changes": [
                {"kind": one.kind, "key": one.key, "before": one.before, "after": one.after}
                for one in self.changes
            ],
            "start": rfc3339(self.start),
            "end": rfc3339(self.end),
            "complete": self.complete,
            **estimate_json(self.compared, missed),
            "analyzers": [one.as_json() for one in self.analyzers],
        }


def replay_configuration(
    document: Document,
    catalogs: Catalogs,
    context: Context,
    span: tuple[datetime, datetime],
    *,
    environment: Mapping[str, str] | None = None,
    prune: bool = False,
    versions: bool = False,
    most_windows: int | None = None,
) -> ConfigurationReplay:
    """The document against the configuration in force, over what was recorded in a span. Nothing is changed.

    `versions`: recorded verdicts of earlier versions of analyzers are compared with the installed ones, too.
    `most_windows` limits the windows that are judged for each schedule.

    Raises InvalidConfigurationError, InvalidValueError of the span.
    """
    start, end = span
    openings = Openings(start, end)
    found: list[Configuration] = []
    before = configuration_in_force(start, end)
    changes = apply(
        document,
        catalogs,
        context,
        environment=environment,
        prune=prune,
        dry=True,
        look=lambda: found.append(configuration_in_force(start, end)),
    )
    after = replace(found[0], suppressions=proposed(before.suppressions, found[0].suppressions, start))
    past = recorded_past(openings)
    compared = compare(past, before, after)
    stopped = openings.last
    calls = calls_of_findings(after, usual_answer(past.incidents))
    analyzers = list(replayed_schedules(changes, start, end, calls, most_windows))
    if versions:
        analyzers += replayed_versions(start, end, calls, most_windows)
    return ConfigurationReplay(changes, start, stopped or end, stopped is None, compared, analyzers)


def configuration_in_force(start: datetime, end: datetime) -> Configuration:
    """Routes, policies, suppressions, rotas and people as they are, for a span of the past."""
    policies = {}
    for row in EscalationPolicy.objects.all():
        with suppress(InvalidValueError):  # what cannot be read calls nobody
            policies[row.slug] = row.policy
    of_teams = dict(EscalationPolicy.objects.exclude(team=None).values_list("team__slug", "slug"))
    users = get_user_model()
    people = users.objects.filter(is_active=True).values_list(users.USERNAME_FIELD, flat=True)
    return Configuration(
        routing_table(),
        policies,
        of_teams,
        Suppressions(*suppressions_as_written(start)),
        _rotas(start, end + AFTERWARDS),
        _members(),
        frozenset(people),
    )


def _rotas(start: datetime, end: datetime) -> dict[str, Schedule]:
    found = {}
    for row in OnCallSchedule.objects.all():
        try:
            found[row.slug] = begun_before(rota(row, start, end), start)
        except UNREADABLE as error:  # it calls nobody
            log.warning("a schedule cannot be read", schedule=row.slug, error=str(error))
    return found


def _members() -> dict[str, list[str]]:
    """By team, those who are called for it."""
    rows = Membership.objects.filter(user__is_active=True).exclude(role=Membership.Role.VIEWER)
    found: dict[str, list[str]] = {}
    for team, person in rows.order_by("user__username").values_list("team__slug", "user__username"):
        found.setdefault(team, []).append(person)
    return found


def recorded_past(openings: Openings) -> RecordedPast:
    return RecordedPast(past_incidents(openings), openings.unplaced, openings.firings)


def past_incidents(openings: Openings) -> list[PastIncident]:
    """Past incidents with their outcome; the alerts of one that was merged into another one are part of that one."""
    opened = openings.before | openings.found
    rows = _rows([_id(stream) for stream in opened])
    alerts: dict[str, list[PastAlert]] = {}
    for stream, opening in opened.items():
        alerts.setdefault(_merged_into(_id(stream), rows), []).extend(opening.alerts)
    found = []
    for stream, opening in opened.items():
        row = rows.get(_id(stream))
        if row is None or row.merged_into is not None:
            continue
        if stream in openings.found:
            found.append(_past(row, opening, alerts[_id(stream)], None))
        elif is_of_alerts(row.dedup_key):
            found.append(_past(row, opening, alerts[_id(stream)], openings.start))
    return found


def _id(stream: str) -> str:
    return stream.removeprefix("incident/")


def _rows(ids: Sequence[str]) -> dict[str, IncidentRow]:
    found: dict[str, IncidentRow] = {}
    for place in range(0, len(ids), IN_PARTS):
        part = ids[place : place + IN_PARTS]
        found.update((str(pk), row) for pk, row in IncidentRow.objects.in_bulk(part).items())
    return found


def _merged_into(id: str, rows: Mapping[str, IncidentRow]) -> str:
    while id in rows and rows[id].merged_into is not None:
        id = str(rows[id].merged_into)
    return id


def _past(
    row: IncidentRow, opening: Opening, alerts: Sequence[PastAlert], since: datetime | None
) -> PastIncident:
    answered = row.acknowledged_at or row.resolved_at
    is_real = row.state == "resolved" and row.confirmed_cause not in (None, "none")
    return PastIncident(
        number=row.number,
        title=row.title,
        opened_at=row.opened_at,
        subject=opening.first.subject,
        alerts=alerts if opening.first.reported is not None else (),
        answered_after=None if answered is None else (answered - row.opened_at).total_seconds(),
        team=row.team if is_real else None,
        seconds_to_team=row.seconds_to_team,
        closed_at=row.resolved_at,
        since=since,
    )
