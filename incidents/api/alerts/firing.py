"""The alerts that fire, as Alertmanager's API v2 lists them: read and written in parts, for there may be 100,000.

The receiver of an alert is the team that would get it; its groups are incidents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import cast

import msgspec
from msgspec import UNSET

from incidents import queries
from incidents.api.alerts.alertmanager_shapes import AlertGroup, AlertStatus, FiringAlert, Receiver
from incidents.domain.incident.alerts import matched_labels
from incidents.domain.routing.rules import RoutingTable, Subject, labels_that_count, team_of
from incidents.domain.suppression.rules import Matcher, Silence
from incidents.domain.values import Severity
from incidents.suppression.suppressor import muted
from ingest.integrations import grafana, prometheus
from ingest.integrations.normalized import Alert as Content
from ingest.integrations.prometheus import fingerprint
from ingest.queries import Alert, open_alerts

FOREVER = timedelta(days=3650)
"""Distance of the end that an alert without one is given."""
GENERATORS = (prometheus.QUERY, grafana.RULE)
"""Name of the link to the source of an alert."""
PART = 2_000
"""Alerts that are held as objects at a time; of the others only the answer's text is."""

_written = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """Filter of a request: alerts that all `matchers` fit, of receivers that `receiver` and all `receiver_matchers`
    fit."""

    matchers: Sequence[Matcher]
    receiver: Callable[[str], bool]
    receiver_matchers: Sequence[Matcher]
    active: bool
    silenced: bool
    inhibited: bool = True


def receiver_of(slug: str) -> Receiver:
    """A team as a receiver. Alertmanager gives each the label `name`; other labels teams have none."""
    return Receiver(slug, {"name": slug})


def fits_receiver(matchers: Iterable[Matcher], slug: str) -> bool:
    """Whether all matchers fit the labels of a receiver."""
    return all(matcher.matches({"name": slug}) for matcher in matchers)


def listed(wanted: AlertFilter, silences: Sequence[Silence], table: RoutingTable, now: datetime) -> bytes:
    """The answer of `GET /api/v2/alerts`: a JSON array."""
    parts = _chosen(wanted, silences, table, now)
    return b"[" + b",".join(_written(one.shape()) for part in parts for one in part) + b"]"


def grouped(wanted: AlertFilter, silences: Sequence[Silence], table: RoutingTable, now: datetime) -> bytes:
    """The answer of `GET /api/v2/alerts/groups`: incidents with their alerts; those without an incident are
    one group.
    """
    groups: dict[tuple[str, str], list[bytes]] = {}
    for part in _chosen(wanted, silences, table, now):
        numbers = queries.incident_numbers([one.alert.id for one in part])
        for one in part:
            number = str(numbers.get(one.alert.id, ""))
            groups.setdefault((one.receiver, number), []).append(_written(one.shape()))
    return b"[" + b",".join(_group(*key, members) for key, members in groups.items()) + b"]"


def _group(receiver: str, number: str, members: Iterable[bytes]) -> bytes:
    alerts = cast("list[FiringAlert]", [msgspec.Raw(one) for one in members])
    return _written(AlertGroup({"incident": number} if number else {}, {}, receiver_of(receiver), alerts))


@dataclass(frozen=True, slots=True)
class _Shown:
    """An alert that fires, and what Alertmanager would say of it."""

    alert: Alert
    receiver: str
    silenced_by: list[str]
    inhibited_by: list[str]
    muted_by: list[str]

    @property
    def is_suppressed(self) -> bool:
        return bool(self.silenced_by or self.inhibited_by or self.muted_by)

    def shape(self) -> FiringAlert:
        one = self.alert.alert
        links = {link["text"]: link["href"] for link in one.links}
        return FiringAlert(
            labels=dict(one.labels),
            annotations=dict(one.annotations) if one.annotations is not None else _described(one),
            starts_at=one.starts_at or (self.alert.fired[-1] if self.alert.fired else self.alert.changed_at),
            ends_at=one.expires_at or self.alert.last_seen + FOREVER,
            updated_at=self.alert.last_seen,
            # The key of what Prometheus posts is its fingerprint.
            fingerprint=one.key if self.alert.endpoint == "alertmanager-api" else fingerprint(one.labels),
            receivers=[receiver_of(self.receiver)],
            status=AlertStatus(
                "suppressed" if self.is_suppressed else "active",
                self.silenced_by,
                self.inhibited_by,
                self.muted_by,
            ),
            generator_url=next((links[name] for name in GENERATORS if links.get(name)), UNSET),
        )


def _described(alert: Content) -> dict[str, str]:
    """Annotations for an alert whose sender has none of the kind."""
    return {"summary": alert.title, **({"description": alert.description} if alert.description else {})}


def _chosen(
    wanted: AlertFilter, silences: Sequence[Silence], table: RoutingTable, now: datetime
) -> Iterator[list[_Shown]]:
    shown = _shown(wanted, silences, _receivers(table, now), now)
    while part := list(islice(shown, PART)):
        yield part


def _receivers(table: RoutingTable, now: datetime) -> Callable[[Alert], str]:
    """The team of an alert; asked once for all that differ in nothing that the rules look at."""
    names = sorted(labels_that_count(table))

    @lru_cache(maxsize=PART)
    def of(
        component: str | None, severity: Severity, integration: str, values: tuple[str | None, ...]
    ) -> str:
        labels = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        subject = Subject(component, labels, severity=severity, integration=integration, at=now)
        return team_of(subject, table).slug

    def receiver(alert: Alert) -> str:
        one = alert.alert
        values = tuple(one.labels.get(name) for name in names)
        return of(one.component, one.severity, alert.integration, values)

    return receiver


def _shown(
    wanted: AlertFilter, silences: Sequence[Silence], receiver_of: Callable[[Alert], str], now: datetime
) -> Iterator[_Shown]:
    firing, in_force = open_alerts(), [silence for silence in silences if silence.span(now) is not None]
    while part := list(islice(firing, PART)):
        held = muted([alert.id for alert in part])
        for alert in part:
            labels = alert.alert.labels
            if not all(matcher.matches(labels) for matcher in wanted.matchers):
                continue
            matched = matched_labels(labels, alert.alert.component, alert.integration, alert.alert.key)
            silencing = [silence.id for silence in in_force if silence.fits(matched)]
            inhibited_by = held.inhibited_by.get(alert.id, [])
            one = _Shown(alert, receiver_of(alert), silencing, inhibited_by, held.muted_by.get(alert.id, []))
            if _is_wanted(one, wanted):
                yield one


def _is_wanted(one: _Shown, wanted: AlertFilter) -> bool:
    """As Alertmanager asks: each flag that is false leaves out those that it is about."""
    if (one.silenced_by and not wanted.silenced) or (one.inhibited_by and not wanted.inhibited):
        return False
    if not fits_receiver(wanted.receiver_matchers, one.receiver):
        return False
    return (wanted.active or one.is_suppressed) and wanted.receiver(one.receiver)
