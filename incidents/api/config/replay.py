"""A file of configuration against the recorded past: what it would have called, whom, and what it would have missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from analyzers.api.fields import SpanField
from analyzers.queries import NothingToReplayError, Share
from incidents.api.config.views import Catalogs, Change, apply
from incidents.domain.config.yaml import Document
from incidents.domain.configuration_replay import (
    Compared,
    Configuration,
    PastIncident,
    compare,
    estimate_json,
)
from incidents.domain.incident.alerts import matched_labels
from incidents.domain.replay import RecordedInput
from incidents.domain.suppression.rules import Silence
from incidents.domain.values import InvalidValueError, rfc3339
from incidents.escalation.models import EscalationPolicy
from incidents.incident.models import IncidentRow
from incidents.routing.replay import Openings
from incidents.scorecards.backtest import Backtest, backtest
from incidents.scorecards.requests import BacktestRequest, InvalidBacktestError, checked
from incidents.teams.models import Silence as SilenceRow
from incidents.teams.models import routing_table
from ingest.queries import Context, now_utc

SCHEDULES: Final = "analysis_schedules"
IN_PARTS: Final = 500


@dataclass(frozen=True, slots=True)
class Backtested:
    """A changed schedule of an analyzer over the span, as it is and as it would be; `why` says why one is missing."""

    schedule: str
    before: Backtest | None
    after: Backtest | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class ConfigurationReplay:
    """`end` is where reading stopped; `complete` says whether that is the end that was asked for."""

    changes: Sequence[Change]
    start: datetime
    end: datetime
    complete: bool
    compared: Compared
    backtests: Sequence[Backtested]

    @property
    def missed(self) -> int:
        """Incidents that nobody would have been called for, and those that changed analyzers would no longer find."""
        lost = (len(one.after.score.missed) - len(one.before.score.missed) for one in self.backtests
                if one.before and one.after)  # fmt: skip
        return self.compared.missed + sum(max(0, one) for one in lost)

    def exceeded(self, max_more_calls: int | None, max_missed: int | None) -> list[str]:
        """The thresholds that the figures are above, in words."""
        found = []
        net = self.compared.calls_after - self.compared.calls_before
        if max_more_calls is not None and net > max_more_calls:
            found.append(f"{net} more calls than now, allowed are {max_more_calls}")
        if max_missed is not None and self.missed > max_missed:
            found.append(f"{self.missed} incidents missed, allowed are {max_missed}")
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
            "analyzers": [
                {
                    "schedule": one.schedule,
                    "before": None if one.before is None else one.before.as_json(),
                    "after": None if one.after is None else one.after.as_json(),
                    "reason": one.why or None,
                }
                for one in self.backtests
            ],
        }


def replay_configuration(
    document: Document,
    catalogs: Catalogs,
    context: Context,
    span: tuple[datetime, datetime],
    *,
    environment: Mapping[str, str] | None = None,
    prune: bool = False,
) -> ConfigurationReplay:
    """The document against the configuration in force, over what was recorded in a span. Nothing is changed.

    Raises InvalidConfigurationError, InvalidValueError of the span.
    """
    start, end = span
    openings = Openings(start, end)
    found: list[Configuration] = []
    before = configuration_in_force(None)
    known = set(SilenceRow.objects.values_list("pk", flat=True))
    changes = apply(
        document,
        catalogs,
        context,
        environment=environment,
        prune=prune,
        dry=True,
        look=lambda: found.append(configuration_in_force(known)),
    )
    compared = compare(past_incidents(openings), before, found[0])
    stopped = openings.last
    schedules = [one for one in changes if one.kind == SCHEDULES and one.before and one.after]
    tested = [_backtested(one, start, end) for one in schedules]
    return ConfigurationReplay(changes, start, stopped or end, stopped is None, compared, tested)


def configuration_in_force(known: set[Any] | None) -> Configuration:
    """Routes, policies, and silences that are not among the `known`; None: no silence."""
    policies = {}
    for row in EscalationPolicy.objects.all():
        with suppress(InvalidValueError):  # what cannot be read calls nobody
            policies[row.slug] = row.policy
    of_teams = dict(EscalationPolicy.objects.exclude(team=None).values_list("team__slug", "slug"))
    rows = () if known is None else SilenceRow.objects.exclude(pk__in=known).select_related("recurrence")
    silences: tuple[Silence, ...] = tuple(row.rule for row in rows)
    return Configuration(routing_table(), policies, of_teams, silences)


def past_incidents(openings: Openings) -> Iterator[PastIncident]:
    """Past incidents with their outcome; incidents that were merged into another one are part of that one."""
    together: list[tuple[str, tuple[RecordedInput, ...]]] = []
    for opening in openings.each():
        together.append((opening.stream.removeprefix("incident/"), opening.inputs))
        if len(together) >= IN_PARTS:
            yield from _with_outcomes(together)
            together = []
    yield from _with_outcomes(together)


def _with_outcomes(together: Sequence[tuple[str, tuple[RecordedInput, ...]]]) -> Iterator[PastIncident]:
    rows = {str(pk): row for pk, row in IncidentRow.objects.in_bulk([id for id, _ in together]).items()}
    for id, inputs in together:
        row = rows.get(id)
        if row is not None and row.merged_into is None:
            yield _past(row, inputs)


def _past(row: IncidentRow, inputs: tuple[RecordedInput, ...]) -> PastIncident:
    answered = row.acknowledged_at or row.resolved_at
    is_real = row.state == "resolved" and row.confirmed_cause not in (None, "none")
    alerts = [one.reported for one in inputs if one.reported is not None]
    return PastIncident(
        number=row.number,
        title=row.title,
        opened_at=row.opened_at,
        subject=inputs[0].subject,
        labels=tuple(matched_labels(one.labels, one.component, one.integration, one.key) for one in alerts),
        answered_after=None if answered is None else (answered - row.opened_at).total_seconds(),
        team=row.team if is_real else None,
        seconds_to_team=row.seconds_to_team,
    )


def _backtested(change: Change, start: datetime, end: datetime) -> Backtested:
    """Both sides of a changed schedule."""
    assert change.before is not None
    assert change.after is not None
    try:
        before, after = (backtest(_request(one, start, end)) for one in (change.before, change.after))
    except (InvalidBacktestError, NothingToReplayError) as error:
        return Backtested(change.key, None, None, str(error))
    return Backtested(change.key, before, after)


def _request(schedule: Mapping[str, Any], start: datetime, end: datetime) -> Any:
    span = SpanField()
    requested = BacktestRequest(
        analyzer=schedule["analyzer"],
        start=start,
        end=end,
        params=schedule.get("params") or {},
        length=span.to_internal_value(schedule["length"]),
        every=span.to_internal_value(schedule["every"]),
        regions=(schedule["region"],) if schedule.get("region") else (),
    )
    return checked(requested, now_utc())[0]
