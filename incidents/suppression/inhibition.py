"""Which alerts inhibit others: kept by key, so that an alert is judged by looking one key up a rule, in a storm too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

import structlog

from incidents.domain.incident.grouping import Reported
from incidents.domain.suppression.inhibition import Rule, sides
from incidents.domain.values import UNREADABLE
from incidents.suppression.models import InhibitingAlert, InhibitionRule
from incidents.teams.models import Unreadable
from ingest.queries import open_alerts

Labels = Mapping[str, str]
PART = 1_000

log = structlog.get_logger("correlation")


class Inhibition:
    """The rules as they are now."""

    def __init__(self) -> None:
        self._rules: list[tuple[int, Rule]] = []
        self.unreadable: Unreadable = []
        for row in InhibitionRule.objects.all():
            try:
                self._rules.append((row.pk, row.rule))
            except UNREADABLE as error:  # it mutes nothing, and keeps no alert from its incident
                log.warning("an inhibition rule cannot be read", rule=row.slug, error=str(error))
                self.unreadable.append((f"the inhibition rule `{row.slug}`", str(error)))

    def observe(self, alerts: Iterable[Reported]) -> None:
        """Keep what these alerts inhibit from now on: nothing if they fire no more."""
        if not self._rules:
            return
        told = list(alerts)
        InhibitingAlert.objects.filter(alert__in=[one.alert for one in told]).delete()
        firing = [(one.alert, one.title, one.labels) for one in told if one.fires]
        rows = [row for pk, rule in self._rules for row in _rows(pk, rule, firing)]
        InhibitingAlert.objects.bulk_create(rows, batch_size=PART, ignore_conflicts=True)

    def muted(self, alerts: Mapping[str, Labels]) -> dict[str, tuple[UUID, str]]:
        """By alert, of those that a rule mutes: the key under which it does, and why."""
        asked = {
            alert: [(key, rule) for _, rule in self._rules if (key := sides(rule, labels).muted_by)]
            for alert, labels in alerts.items()
        }
        wanted = {key for keys in asked.values() for key, _ in keys}
        if not wanted:
            return {}
        rows = InhibitingAlert.objects.filter(key__in=wanted).order_by("key", "-pk")
        titles = dict(rows.values_list("key", "title"))
        return {
            alert: next((key, rule.why(titles[key])) for key, rule in keys if key in titles)
            for alert, keys in asked.items()
            if any(key in titles for key, _ in keys)
        }


def _rows(pk: int, rule: Rule, alerts: Iterable[tuple[str, str, Labels]]) -> list[InhibitingAlert]:
    return [
        InhibitingAlert(rule_id=pk, alert=alert, title=title, key=key)
        for alert, title, labels in alerts
        for key in sorted(sides(rule, labels).mutes)
    ]


def refill(row: InhibitionRule) -> None:
    """Find what fires now that a new or changed rule has for a source. Walks all alerts that fire, in parts."""
    InhibitingAlert.objects.filter(rule=row).delete()
    rule, found = row.rule, list[InhibitingAlert]()
    for one in open_alerts():
        found += _rows(row.pk, rule, [(one.id, one.alert.title, one.alert.labels)])
        if len(found) >= PART:
            InhibitingAlert.objects.bulk_create(found, ignore_conflicts=True)
            found = []
    InhibitingAlert.objects.bulk_create(found, ignore_conflicts=True)
