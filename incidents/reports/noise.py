"""The noisiest sources: which integrations and alerts fired most, and what a silence and a rule would have done.

GET /api/v1/noise. Firings are counted in a sketch, so that memory does not grow with the alerts; what a silence would
have done is the replay of configurations over the incidents that opened in that time. The proposed rule is the
mildest change of the alert's rule that spares half of its firings, tried on the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from incidents.api.config.replay import configuration_in_force, recorded_past
from incidents.api.incident.views import ERRORS, IncidentAPI, parameters
from incidents.domain.alert_rules import Past, Quieter, past_of, quieter
from incidents.domain.configuration_replay import Compared, RecordedPast, compare, with_silence
from incidents.domain.heavy_hitters import Heavy, HeavyHitters
from incidents.domain.incident.alerts import Reported, reported_from
from incidents.domain.suppression.rules import Matcher, Silence
from incidents.domain.values import InvalidValueError, rfc3339
from incidents.reports.alert_rules import read_notes, sentence
from incidents.routing.replay import Openings
from ingest.queries import now_utc, position_at, read_all

DAYS: Final = 7
MOST_DAYS: Final = 31
SHOWN: Final = 10
CANDIDATES: Final = 50
"""Candidates that stay while events are read."""
MOST_EVENTS: Final = 50_000
PART: Final = 5_000


@dataclass(frozen=True, slots=True)
class NoisyAlert:
    """An alert that fired often. `matchers` are of the proposed silence, `suppressed` the firings of all alerts that it
    would have suppressed; `replayed` is what it would have done to calls. `rule` is a change of its rule, None where
    none that was tried helps."""

    alert: str
    title: str
    component: str | None
    integration: str
    fired: Heavy[str]
    matchers: tuple[Matcher, ...]
    suppressed: int
    replayed: Compared
    rule: Quieter | None


@dataclass(frozen=True, slots=True)
class Noise:
    """`fired` firings from `start` to `end`; an incomplete one met MOST_EVENTS and ended there."""

    start: datetime
    end: datetime
    complete: bool
    fired: int
    sources: tuple[Heavy[str], ...]
    alerts: tuple[NoisyAlert, ...]


def noise(start: datetime, end: datetime, shown: int = SHOWN) -> Noise:
    """Of what was recorded in a span. Raises InvalidValueError."""
    openings = Openings(start, end)
    sources, alerts = HeavyHitters[str](CANDIDATES), HeavyHitters[Reported](CANDIDATES)
    last, read = end, 0
    for one, at, number in _fired(start, end):
        sources.add(one.integration, one.integration)
        alerts.add(one.alert, one)
        last, read = at, number
    complete = read < MOST_EVENTS
    chosen = alerts.heaviest(shown)
    proposals = {heavy.thing.alert: _matchers(heavy.thing) for heavy in chosen}
    suppressed = dict.fromkeys(proposals, 0)
    if chosen:
        for one, _, _ in _fired(start, end):
            labels = one.matched
            for alert, matchers in proposals.items():
                suppressed[alert] += all(matcher.matches(labels) for matcher in matchers)
    before = configuration_in_force(start, end)
    past = recorded_past(openings) if chosen else RecordedPast(())
    firings = past_of(read_notes(start, end)[0]) if chosen else Past()
    found = []
    for heavy in chosen:
        it, matchers = heavy.thing, proposals[heavy.thing.alert]
        silence = Silence("", matchers, start, end, "", "proposed")
        replayed = compare(past, before, with_silence(before, silence))
        counted = Heavy(it.alert, heavy.least, heavy.most)
        found.append(
            NoisyAlert(
                it.alert,
                it.title,
                it.component,
                it.integration,
                counted,
                matchers,
                suppressed[it.alert],
                replayed,
                quieter(firings, firings.rules[it.alert]) if it.alert in firings.rules else None,
            )
        )
    return Noise(
        start,
        end if complete else last,
        complete,
        alerts.sketch.total,
        tuple(sources.heaviest(shown)),
        tuple(found),
    )


def _fired(start: datetime, end: datetime) -> Iterator[tuple[Reported, datetime, int]]:
    """Firings with the moment at which they were recorded and the number of events so far."""
    after, upto, read = position_at(start), position_at(end), 0
    while read < MOST_EVENTS and (
        events := read_all(after, min(PART, MOST_EVENTS - read), ("alert.reported",), upto=upto)
    ):
        for event in events:
            read += 1
            one = reported_from(event.body)
            if one.change == "fired":
                yield one, event.recorded_at, read
        after = events[-1].position


def _matchers(one: Reported) -> tuple[Matcher, ...]:
    """The rule and the component of an alert, else its dedup key."""
    matched, named = one.matched, list[Matcher]()
    if one.labels.get("alertname"):
        named.append(Matcher("alertname", one.labels["alertname"]))
        named += [Matcher(name, matched[name]) for name in ("component", "instance") if matched.get(name)][:1]
    else:
        named.append(Matcher("dedup_key", matched["dedup_key"]))
    return (*named, Matcher("integration", matched["integration"]))


# Over HTTP
# ----------------------------------------------------------------------------------------------------------
class CountedShape(s.Serializer[Any]):
    """The count lies between `least` and `most`: `most` is never too low, `least` right with a probability of .993."""

    least = s.IntegerField()
    most = s.IntegerField()


class SourceShape(CountedShape):
    integration = s.CharField()


class ReplayedShape(s.Serializer[Any]):
    suppressed = s.IntegerField(help_text="number of firings that the silence would have suppressed")
    calls_before = s.IntegerField(help_text="number of pages of all incidents opened in the period")
    calls_after = s.IntegerField()
    missed = s.IntegerField(help_text="number of incidents with a confirmed cause left without a page")
    of = s.IntegerField(help_text="number of incidents with a confirmed cause")


class RuleShape(s.Serializer[Any]):
    change = s.ChoiceField(choices=["for", "keep_firing_for", "inhibit", "no_paging"])
    minutes = s.IntegerField(
        allow_null=True, help_text="minutes of `for` or `keep_firing_for`; null: another kind of change"
    )
    by = s.CharField(allow_null=True, help_text="name of the inhibiting alert rule; null: none")
    sentence = s.CharField()
    firings_before = s.IntegerField(help_text="number of firings of all alerts of the rule")
    firings_after = s.IntegerField()
    calls_before = s.IntegerField(help_text="number of recorded pages of the incidents of the rule")
    calls_after = s.IntegerField()
    missed = s.IntegerField(
        help_text="number of incidents that people acted on and that would not have paged"
    )
    acted = s.IntegerField(help_text="number of incidents that people acted on")


class NoisyShape(CountedShape):
    alert = s.CharField()
    title = s.CharField()
    component = s.CharField(allow_null=True)
    integration = s.CharField()
    matchers = s.ListField(child=s.CharField(), help_text="matchers of the proposed silence")
    replayed = ReplayedShape()
    rule = RuleShape(
        allow_null=True, help_text="change of the alert rule that avoids half of the firings; null: none"
    )


class NoiseShape(s.Serializer[Any]):
    start = s.DateTimeField()
    end = s.DateTimeField(help_text="end of the events read")
    complete = s.BooleanField()
    fired = s.IntegerField()
    sources = SourceShape(many=True)
    alerts = NoisyShape(many=True)


class NoiseView(IncidentAPI):
    @extend_schema(
        operation_id="noise",
        parameters=[OpenApiParameter("days", int, description=f"1 to {MOST_DAYS}, default {DAYS}")],
        responses={200: NoiseShape, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """The integrations and the alerts that fired most, each alert with a silence and a change of its rule, and what
        they would have done."""
        end = now_utc()
        days = days_from(parameters(request, "days"))
        return Response(as_json(noise(end - timedelta(days=days), end)))


def days_from(query: Mapping[str, str]) -> int:
    text = query.get("days") or str(DAYS)
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= MOST_DAYS):
        raise InvalidValueError("days", f"must be a number from 1 to {MOST_DAYS}")
    return int(text)


def as_json(found: Noise) -> dict[str, Any]:
    return {
        "start": rfc3339(found.start),
        "end": rfc3339(found.end),
        "complete": found.complete,
        "fired": found.fired,
        "sources": [
            {"integration": one.thing, "least": one.least, "most": one.most} for one in found.sources
        ],
        "alerts": [
            {
                "alert": one.alert,
                "title": one.title,
                "component": one.component,
                "integration": one.integration,
                "least": one.fired.least,
                "most": one.fired.most,
                "matchers": [str(matcher) for matcher in one.matchers],
                "replayed": {
                    "suppressed": one.suppressed,
                    "calls_before": one.replayed.calls_before,
                    "calls_after": one.replayed.calls_after,
                    "missed": one.replayed.missed,
                    "of": one.replayed.real,
                },
                "rule": None if one.rule is None else _rule_json(one.rule),
            }
            for one in found.alerts
        ],
    }


def _rule_json(one: Quieter) -> dict[str, Any]:
    effect = one.proposal.effect
    return {
        "change": one.proposal.kind,
        "minutes": one.proposal.minutes,
        "by": None if one.proposal.by is None else one.proposal.by.name,
        "sentence": sentence(one.proposal),
        "firings_before": one.fired,
        "firings_after": one.fires,
        "calls_before": effect.calls_before,
        "calls_after": effect.calls_after,
        "missed": effect.missed,
        "acted": effect.acted,
    }
