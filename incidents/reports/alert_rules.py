"""Alert rules of a period out of the log, with proposals tried on the last quarter.

Events are read a day at a time from the end backwards, so that the period is whole where MOST_EVENTS ends the reading.
What not paging would have done to calls is the replay of configurations, as for the noisiest sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from incidents.api.config.replay import configuration_in_force, recorded_past
from incidents.api.incident.views import ERRORS, IncidentAPI, parameters
from incidents.api.inputs import time_of
from incidents.domain.alert_rules import (
    READ,
    Effect,
    Note,
    Past,
    Proposal,
    Proposals,
    Rule,
    RuleUse,
    needs_proposal,
    note_of,
    past_of,
    proposals,
    uses,
)
from incidents.domain.configuration_replay import RecordedPast, compare, with_silence
from incidents.domain.incident.flapping import FIRINGS
from incidents.domain.suppression.rules import Matcher, Silence
from incidents.domain.values import rfc3339
from incidents.reports.on_call_load import LATE, days_from, people_zones
from incidents.routing.replay import LONGEST, Openings
from ingest.queries import Position, now_utc, position_at, read_all

Json = dict[str, Any]
DAYS: Final = 7
MOST_DAYS: Final = 90
HISTORY: Final = timedelta(days=90)
"""History that proposals are tried on."""
STEP: Final = timedelta(days=1)
PART: Final = 5_000
MOST_EVENTS: Final = 60_000
PROPOSED: Final = 10
"""Rules for which a change is looked for: those with most calls without action."""
MOST_RULES: Final = 200
SENTENCES: Final = {
    "for": "Fire only after {minutes} min more (for)",
    "keep_firing_for": "Keep firing for {minutes} min (keep_firing_for)",
    "inhibit": "Inhibit it while {by} fires on the same component",
    "lower_urgency": "Lower the urgency: at night, wait for the morning",
    "no_paging": "Route it without paging",
    "delete": "Delete the rule",
}


@dataclass(frozen=True, slots=True)
class AlertRules:
    """Rules from `start` to `end`, those with most wasted calls first; `proposals` by rule, tried from `since` to
    `end`. `complete`: the whole period was read."""

    start: datetime
    end: datetime
    since: datetime
    complete: bool
    rules: tuple[RuleUse, ...]
    proposals: dict[Rule, Proposals]


def alert_rules(start: datetime, end: datetime, upto: Position | None = None) -> AlertRules:
    """The rules that fired or opened incidents in a period, of what the log held at `upto`."""
    notes, since = read_notes(min(start, end - HISTORY), end, upto)
    past = past_of(notes)
    found = uses(past, max(start, since), end)[:MOST_RULES]
    worst = [one for one in found if needs_proposal(one)][:PROPOSED]
    return AlertRules(start, end, since, since <= start, tuple(found), _proposals(past, worst, since, end))


def read_notes(oldest: datetime, end: datetime, upto: Position | None = None) -> tuple[list[Note], datetime]:
    """Notes in order, and since when they are whole."""
    steps: list[list[Note]] = []
    since, left = end + LATE, MOST_EVENTS
    while since > oldest:
        begin = max(oldest, min(since, end) - STEP)
        step: list[Note] = []
        for count, note in _step(begin, since, upto, left):
            left -= count
            if note is not None and note.at < end:
                step.append(note)
        if left <= 0:  # only the beginning of this day was read
            break
        steps.append(step)
        since = begin
    return [note for step in reversed(steps) for note in step], min(since, end)


def _step(
    begin: datetime, end: datetime, upto: Position | None, most: int
) -> Iterator[tuple[int, Note | None]]:
    after, last = position_at(begin), position_at(end)
    last = last if upto is None else min(last, upto)
    while most > 0 and (events := read_all(after, min(PART, most), READ, upto=last)):
        most -= len(events)
        after = events[-1].position
        for event in events:
            yield 1, note_of(event)


# Proposals
# ----------------------------------------------------------------------------------------------------------
def _proposals(past: Past, worst: list[RuleUse], since: datetime, end: datetime) -> dict[Rule, Proposals]:
    if not worst:
        return {}
    whole = {one.rule: one for one in uses(past, since, end)}
    zones = people_zones({person for one in past.incidents for person, _ in one.calls})
    recorded = recorded_past(Openings(max(since, end - LONGEST), end))
    return {
        one.rule: proposals(past, whole[one.rule], zones, _replayed(past, one.rule, recorded, since, end))
        for one in worst
    }


def _replayed(
    past: Past, rule: Rule, recorded: RecordedPast, since: datetime, end: datetime
) -> tuple[int, int] | None:
    """Calls of the rule's incidents by the configuration in force, and with its alerts silenced; None for one whose
    alerts no matcher finds."""
    if not rule.labelled:
        return None
    numbers = {one.number for one in past.of(rule)}
    before = configuration_in_force(since, end)
    silence = Silence("", matchers_of_rule(rule), since, end, "", "proposed")
    found = compare(recorded, before, with_silence(before, silence), numbers)
    return found.calls_before, found.calls_after


def matchers_of_rule(rule: Rule) -> tuple[Matcher, ...]:
    """Matchers by which a silence or a route finds its alerts; empty where they have no `alertname`."""
    if not rule.labelled:
        return ()
    return Matcher("alertname", rule.name), Matcher("integration", rule.integration)


# As JSON
# ----------------------------------------------------------------------------------------------------------
def rules_json(found: AlertRules) -> Json:
    """The rules as answers and reports have them."""
    return {
        "start": rfc3339(found.start),
        "end": rfc3339(found.end),
        "since": rfc3339(found.since),
        "complete": found.complete,
        "rules": [_rule_json(one, found.proposals.get(one.rule)) for one in found.rules],
    }


def _rule_json(one: RuleUse, proposed: Proposals | None) -> Json:
    return {
        "rule": one.rule.name,
        "integration": one.rule.integration,
        "matchers": [str(matcher) for matcher in matchers_of_rule(one.rule)],
        "verdict": one.verdict,
        "firings": one.firings,
        "alerts": one.alerts,
        "incidents": one.incidents,
        "calls": one.calls,
        "acknowledged": one.acknowledged,
        "acted": one.acted,
        "ignored": one.ignored,
        "false_alarms": one.false_alarms,
        "uncalled": one.uncalled,
        "open": one.open,
        "flapped": one.flapped,
        "wasted_calls": one.wasted,
        "proposal": None if proposed is None or proposed.best is None else _proposal_json(proposed.best),
        "alternatives": [] if proposed is None else [_proposal_json(each) for each in proposed.others],
        "tried": proposed is not None,
    }


def sentence(one: Proposal) -> str:
    """The change in words."""
    return SENTENCES[one.kind].format(minutes=one.minutes, by="" if one.by is None else one.by.name)


def _proposal_json(one: Proposal) -> Json:
    return {
        "change": one.kind,
        "minutes": one.minutes,
        "sentence": sentence(one),
        "replayed": one.replayed,
        **_effect_json(one.effect),
    }


def _effect_json(one: Effect) -> Json:
    return {
        "calls_before": one.calls_before,
        "calls_after": one.calls_after,
        "calls_fewer": one.fewer,
        "later": one.later,
        "minutes_later": None if one.minutes_later is None else round(one.minutes_later, 1),
        "missed": one.missed,
        "acted": one.acted,
    }


# Over HTTP
# ----------------------------------------------------------------------------------------------------------
class RuleProposalShape(s.Serializer[Any]):
    change = s.ChoiceField(choices=sorted(SENTENCES.keys() - {"inhibit"}))
    minutes = s.IntegerField(
        allow_null=True, help_text="minutes of `for` or `keep_firing_for`; null: another kind of change"
    )
    sentence = s.CharField()
    replayed = s.BooleanField(
        help_text="source of the calls: true: replay of the current configuration; false: recorded calls"
    )
    calls_before = s.IntegerField()
    calls_after = s.IntegerField()
    calls_fewer = s.IntegerField()
    later = s.IntegerField(help_text="number of incidents that would have paged later")
    minutes_later = s.FloatField(allow_null=True, help_text="median delay of these incidents in minutes")
    missed = s.IntegerField(
        help_text="number of incidents that people acted on and that would not have paged"
    )
    acted = s.IntegerField(help_text="number of incidents that people acted on")


class AlertRuleShape(s.Serializer[Any]):
    rule = s.CharField(help_text="`alertname`, else the group of the alert, else its title")
    integration = s.CharField()
    matchers = s.ListField(child=s.CharField(), help_text="matchers of its alerts; empty without `alertname`")
    verdict = s.ChoiceField(choices=["useful", "mixed", "ignored", "flapping", "quiet", "open"])
    firings = s.IntegerField()
    alerts = s.IntegerField(help_text="number of distinct alerts")
    incidents = s.IntegerField()
    calls = s.IntegerField()
    acknowledged = s.IntegerField(help_text="number of incidents acknowledged by a person")
    acted = s.IntegerField(
        help_text="number of incidents on which a person did more than acknowledge or snooze"
    )
    ignored = s.IntegerField(help_text="number of incidents that paged a person and ended by themselves")
    false_alarms = s.IntegerField(help_text="number of incidents resolved by a person with the cause `none`")
    uncalled = s.IntegerField(help_text="number of incidents that ended by themselves without a page")
    open = s.IntegerField()
    flapped = s.IntegerField(
        help_text=f"number of incidents that an alert reopened, or with an alert that fired {FIRINGS} times or more"
    )
    wasted_calls = s.IntegerField(
        help_text="number of pages for incidents that were ignored or a false alarm"
    )
    proposal = RuleProposalShape(allow_null=True)
    alternatives = RuleProposalShape(many=True)
    tried = s.BooleanField(help_text="true: changes were tried, which is done for the worst rules only")


class AlertRulesShape(s.Serializer[Any]):
    start = s.DateTimeField()
    end = s.DateTimeField()
    since = s.DateTimeField(help_text="start of the record on which proposals were tried")
    complete = s.BooleanField(help_text=f"false: the period has more than {MOST_EVENTS:,} events")
    rules = AlertRuleShape(many=True)


class AlertRulesView(IncidentAPI):
    @extend_schema(
        operation_id="alert_rules",
        parameters=[
            OpenApiParameter("end", str, description="end of the period, RFC 3339; default: now"),
            OpenApiParameter("days", int, description=f"1 to {MOST_DAYS}; default: {DAYS}"),
        ],
        responses={200: AlertRulesShape, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """Alert rules that were acted on, ignored or flapped, and effects of a change last quarter."""
        query = parameters(request, "end", "days")
        end = time_of("end", query.get("end")) or now_utc()
        days = days_from(query, DAYS, MOST_DAYS)
        return Response(rules_json(alert_rules(end - timedelta(days=days), end)))
