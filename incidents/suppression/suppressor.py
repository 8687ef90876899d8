"""The suppression of an alert or an incident at a moment.

Alert: the first silence, maintenance window or inhibiting alert that covers it. Inhibiting alerts are indexed
by key, so an alert is judged by one lookup a rule, in a storm too. An incident that blames a component under
maintenance records that once for each time of the window.

Incident: it notifies nobody while every firing alert of it is silenced or under maintenance. The escalation
sweep asks before it notifies, and a sweep of its own snoozes covered incidents within a second or two, so
that lists show it. Notifications resume when the cover ends or no longer covers every firing alert, when an
alert that it does not cover joins, and when an analyzer blames the incident. A person who resumes them
overrides what covers the incident then: each silence and window named in that event is ignored for this
incident until it ends; one that begins later suppresses again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from incidents.domain.incident import commands as c
from incidents.domain.incident.alerts import Reported, reported_from
from incidents.domain.incident.commands import LONGEST_REASON
from incidents.domain.incident.snooze import LONGEST
from incidents.domain.incident.state import Incident, Overridden
from incidents.domain.suppression.rules import (
    ActiveWindow,
    Rule,
    Silence,
    Window,
    first_that_covers,
    first_that_holds,
    in_force,
    passed_over,
    sides,
)
from incidents.domain.values import UNREADABLE, rfc3339
from incidents.incident.models import (
    IncidentRow,
    MemberAlert,
    SuppressedAlert,
    TimelineEntry,
)
from incidents.incident.projection import overridden_from
from incidents.incident.repository import CommandResult, LockedCommand, record, record_on, record_together
from incidents.suppression.models import InhibitingAlert, InhibitionRule, MaintenanceWindow
from incidents.teams.models import Service, Unreadable, silences_as_written
from incidents.teams.models import Silence as SilenceRow
from ingest.queries import Context, firing_alerts, open_alerts

# Suppressor
# ----------------------------------------------------------------------------------------------------------
# Inhibition
# ----------------------------------------------------------------------------------------------------------
Labels = Mapping[str, str]
PART = 1_000

log = structlog.get_logger("correlation")


class Inhibition:
    """The rules as they are now, each with the key of its row."""

    def __init__(self) -> None:
        self.rules: list[tuple[int, Rule]] = []
        self.unreadable: Unreadable = []
        for row in InhibitionRule.objects.all():
            try:
                self.rules.append((row.pk, row.rule))
            except UNREADABLE as error:  # it mutes nothing, and keeps no alert from its incident
                log.warning("an inhibition rule cannot be read", rule=row.slug, error=str(error))
                self.unreadable.append((f"the inhibition rule `{row.slug}`", str(error)))

    def observe(self, alerts: Iterable[Reported]) -> None:
        """Keep what these alerts inhibit from now on: nothing if they fire no more."""
        if not self.rules:
            return
        batch = list(alerts)
        InhibitingAlert.objects.filter(alert__in=[one.alert for one in batch]).delete()
        firing = [(one.alert, one.title, one.labels) for one in batch if one.fires]
        rows = [row for pk, rule in self.rules for row in _rows(pk, rule, firing)]
        InhibitingAlert.objects.bulk_create(rows, batch_size=PART, ignore_conflicts=True)

    def muted(self, alerts: Mapping[str, Labels]) -> dict[str, tuple[UUID, str]]:
        """By alert, of those that a rule mutes: the key under which it does, and why."""
        if not self.rules:
            return {}
        relevant = {
            alert: [(key, rule) for _, rule in self.rules if (key := sides(rule, labels).muted_by)]
            for alert, labels in alerts.items()
        }
        wanted = {key for keys in relevant.values() for key, _ in keys}
        if not wanted:
            return {}
        rows = InhibitingAlert.objects.filter(key__in=wanted).order_by("key", "-pk")
        titles = dict(rows.values_list("key", "title"))
        return {
            alert: next((key, rule.why(titles[key])) for key, rule in keys if key in titles)
            for alert, keys in relevant.items()
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


# Suppressor
# ----------------------------------------------------------------------------------------------------------
MOST_SOURCES: Final = 10_000
"""Alerts that inhibit others that `muted` looks at."""
MOST_NAMED: Final = 10
"""Of those that inhibit the same, so many are named with each alert."""


@dataclass(frozen=True, slots=True)
class Suppression:
    """Rule that suppresses an alert, and the reason why it called nobody."""

    by: str
    why: str


class Suppressor:
    """Rules in force at `at`. Inhibition is as it stands: whoever asks has told it what fires (`Inhibition.hear`)."""

    def __init__(self, at: datetime) -> None:
        self._at = at
        self._silences, silences = silences_as_written(at)
        self._windows, windows = _windows(at)
        self.inhibition = Inhibition()
        self.passed_over = passed_over([*silences, *windows, *self.inhibition.unreadable])
        """In words what cannot be read and holds nothing back; empty where all can be."""

    def holds(self, alerts: Sequence[Reported]) -> dict[str, Suppression]:
        """By alert, of those that call nobody, what holds them."""
        found: dict[str, Suppression] = {}
        for alert in alerts if self._silences or self._windows else ():
            silence = first_that_holds(self._silences, alert.matched, self._at)
            window = first_that_covers(self._windows, "hold", alert.component, alert.labels)
            if silence is not None:
                found[alert.alert] = Suppression(silence.id, silence.why(self._at))
            elif window is not None:
                found[alert.alert] = Suppression(window.window.id, window.why)
        rest = [alert for alert in alerts if alert.alert not in found]
        inhibited = self.inhibition.muted({alert.alert: alert.labels for alert in rest})
        return found | {alert: Suppression(str(key), why) for alert, (key, why) in inhibited.items()}

    def quiet(self, component: str | None, labels: Mapping[str, str]) -> ActiveWindow | None:
        """The window in which incidents about this component sleep."""
        return first_that_covers(self._windows, "quiet", component, labels)

    def no_longer_suppressed(self) -> QuerySet[SuppressedAlert]:
        """Alerts that are held by nothing that is in force: their time is over, or what inhibited them is."""
        suppressing = [silence.id for silence in self._silences]
        suppressing += [one.window.id for one in self._windows if one.window.mode == "hold"]
        inhibiting = InhibitingAlert.objects.filter(key=OuterRef("silence"))
        return firing_suppressed().exclude(silence__in=suppressing).exclude(Exists(inhibiting))


@dataclass(frozen=True, slots=True)
class MutedAlerts:
    """By alert: the alerts that inhibit it, and the maintenance windows that hold it."""

    inhibited_by: Mapping[str, list[str]]
    muted_by: Mapping[str, list[str]]


def muted(ids: Sequence[str]) -> MutedAlerts:
    """Of these alerts those that are held otherwise than by a silence."""
    rows = firing_suppressed().filter(alert__in=ids).values_list("alert", "silence")
    held = {str(alert): by for alert, by in rows}
    windows = MaintenanceWindow.objects.filter(edition__in=set(held.values()))
    slugs = dict(windows.values_list("edition", "slug"))
    sources: dict[UUID, list[str]] = {}
    inhibiting = InhibitingAlert.objects.filter(key__in=set(held.values())).order_by("alert")
    for key, alert in inhibiting.values_list("key", "alert")[:MOST_SOURCES]:
        if len(sources_of_key := sources.setdefault(key, [])) < MOST_NAMED:
            sources_of_key.append(str(alert))
    return MutedAlerts(
        {alert: sources[by] for alert, by in held.items() if by in sources},
        {alert: [slugs[by]] for alert, by in held.items() if by in slugs},
    )


def firing_suppressed() -> QuerySet[SuppressedAlert]:
    """The suppressed alerts that still fire."""
    return SuppressedAlert.objects.filter(ended_at__isnull=True)


def drop_suppressions(ids: Collection[str]) -> None:
    """The alerts fire, whatever suppressed them before."""
    if (
        SuppressedAlert.objects.exists()
    ):  # a storm asks with hundreds of ids, and mostly nothing is suppressed
        SuppressedAlert.objects.filter(alert__in=ids).delete()


def end_suppressions(ids: Collection[str], at: datetime) -> None:
    """Suppressed alerts among these are over: the reason stays until their receipts are dropped."""
    if firing_suppressed().filter(alert__in=ids).update(ended_at=at):
        SuppressedAlert.objects.filter(ended_at__lt=at - settings.ALERT_RETENTION).delete()


def windows_in_force(at: datetime) -> list[ActiveWindow]:
    """The one that ends last first."""
    return _windows(at)[0]


def windows_between(start: datetime, end: datetime) -> list[ActiveWindow]:
    """Windows as they are written now, each with its latest time that overlaps these moments, the one that ends last
    first."""
    found = list[ActiveWindow]()
    for window in _readable(start, end)[0]:
        span = window.times.at(end) or window.times.at(start)
        while (later := window.times.after(span.starts_at if span else start)) and later.starts_at <= end:
            span = later
        if span is not None:
            found.append(ActiveWindow(window, span))
    return sorted(found, key=lambda one: one.span.ends_at, reverse=True)


def suppressions_as_written(
    since: datetime,
) -> tuple[tuple[Silence, ...], tuple[Window, ...], tuple[Rule, ...]]:
    """Silences and maintenance windows that are not over by a moment, inhibition rules; without what cannot be read."""
    silences = []
    for row in SilenceRow.objects.filter(ends_at__gt=since).select_related("recurrence"):
        try:
            silences.append(row.rule)
        except UNREADABLE as error:
            log.warning("a silence cannot be read", silence=str(row.pk), error=str(error))
    windows, _ = _read_windows(list(MaintenanceWindow.objects.exclude(rule="", ends_at__lte=since)), since)
    rules = tuple(rule for _, rule in Inhibition().rules)
    return tuple(silences), tuple(windows), rules


def _windows(at: datetime) -> tuple[list[ActiveWindow], Unreadable]:
    """Those in force, and those that may be and cannot be read: a call too many is better than none."""
    windows, unreadable = _readable(at, at)
    return in_force(windows, at), unreadable


def _readable(start: datetime, end: datetime) -> tuple[list[Window], Unreadable]:
    # What recurs is looked at whenever it began: its times are found by its rule.
    rows = MaintenanceWindow.objects.filter(starts_at__lte=end).exclude(rule="", ends_at__lte=start)
    return _read_windows(list(rows), end)


def _read_windows(rows: Sequence[MaintenanceWindow], at: datetime) -> tuple[list[Window], Unreadable]:
    """Those whose times can be read at a moment."""
    named = {slug for row in rows for slug in row.services}
    patterns = dict(Service.objects.filter(slug__in=named).values_list("slug", "patterns")) if named else {}
    windows: list[Window] = []
    unreadable: Unreadable = []
    for row in rows:
        try:
            window = row.window(patterns)
            window.times.at(at)
            windows.append(window)
        except UNREADABLE as error:
            log.warning("a maintenance window cannot be read", window=row.slug, error=str(error))
            unreadable.append((f"the maintenance window `{row.slug}`", str(error)))
    return windows, unreadable


# Maintenance
# ----------------------------------------------------------------------------------------------------------
def note_planned(incident: Incident, at: datetime, context: Context) -> None:
    """Note the windows in force whose patterns fit what the incident blames."""
    for one in windows_in_force(at):
        name = next((name for name in sorted(incident.cause) if one.window.names(name)), None)
        if name is None:
            continue
        noted = TimelineEntry.objects.filter(incident__pk=incident.id, type="incident.maintenance_noted")
        until = rfc3339(one.span.ends_at)
        if not noted.filter(body__window=one.window.slug, body__until=until).exists():
            record(
                incident.id, c.RecordMaintenance(one.window.slug, name, one.span.ends_at, one.why), context
            )


def windows_on(service: str) -> list[str]:
    """Planned work on a service that is not over, in words."""
    going_on = Q(ends_at__gt=timezone.now()) | ~Q(rule="")
    found = MaintenanceWindow.objects.filter(going_on, services__contains=[service])
    return [f"the maintenance window {slug}" for slug in found.values_list("slug", flat=True)]


# Incidents
# ----------------------------------------------------------------------------------------------------------
ACTOR: Final = "system:incidents"
MOST: Final = 2_000
"""Incidents that one sweep looks at, the newest first; those beyond are found when they would notify."""
AWAKE: Final = ("open", "acknowledged")
AT_ONCE: Final = 500
"""Alerts of an incident that are read at once: the first that is not covered ends the search."""


Spanned = tuple[str, datetime]
"""A silence or window by id, in the span that begins at a time."""


@dataclass(frozen=True, slots=True)
class Cover:
    """Cover of an incident from notifying: a silence or window with its times, and the reason."""

    id: str
    starts_at: datetime
    until: datetime
    why: str
    silence: str | None = None
    """Its id where it is a silence."""

    @property
    def span(self) -> Spanned:
        return self.id, self.starts_at

    @property
    def command(self) -> c.Snooze:
        return c.Snooze(self.until, self.why[:LONGEST_REASON], self.silence)


class Covers:
    """Silences and maintenance windows as they are in force at `at`."""

    def __init__(self, at: datetime) -> None:
        self.at = at
        self.silences: list[Silence] = silences_as_written(at)[0]
        self.windows: list[ActiveWindow] = windows_in_force(at)

    def __bool__(self) -> bool:
        return bool(self.silences or self.windows)

    def of(self, row: IncidentRow) -> Cover | None:
        """Cover of every alert that fires in an incident, the first of them to end; None where one is uncovered."""
        if not self or row.state not in AWAKE or not _can_be_suppressed(row):
            return None
        ignored = {(one.id, one.starts_at) for one in self.overridden(row)}
        first: Cover | None = None
        for alert in _firing(row):
            cover = self.of_alert(alert, ignored)
            if cover is None:
                return None
            first = cover if first is None or cover.until < first.until else first
        return first

    def of_alert(self, alert: Reported, ignored: Collection[Spanned] = ()) -> Cover | None:
        """The cover of one alert that lasts longest."""
        found = [one for one in self.all_of(alert) if one.span not in ignored]
        return max(found, key=lambda one: one.until, default=None)

    def all_of(self, alert: Reported) -> list[Cover]:
        found = [
            Cover(one.id, span.starts_at, self._until(span.ends_at), one.why(self.at), one.id)
            for one in self.silences
            if (span := one.span(self.at)) is not None and one.fits(alert.matched)
        ]
        return found + [
            Cover(str(one.window.id), one.span.starts_at, self._until(one.span.ends_at), one.why)
            for one in self.windows
            if one.window.covers(alert.component, alert.labels)
        ]

    def overriding(self, row: IncidentRow) -> tuple[Mapping[str, Any], ...]:
        """Rules that a person overrides who resumes the notifications of an incident, as bodies of its event."""
        if not self or not _can_be_suppressed(row):
            return ()
        found: dict[Spanned, Cover] = {}
        begun = self.begun()
        for alert in _firing(row):
            found |= {one.span: one for one in self.all_of(alert)}
            if len(found) == len(begun):
                break
        return tuple(
            {
                "id": one.id,
                "starts_at": rfc3339(one.starts_at),
                "until": rfc3339(one.until),
                "why": one.why,
            }
            for one in sorted(found.values(), key=lambda one: (one.until, one.id))
        )

    def overridden(self, row: IncidentRow) -> list[Overridden]:
        """The silences and windows still in force that a person has overridden for an incident."""
        if not row.overridden:
            return []
        begun = self.begun()
        known = [overridden_from(one) for one in row.overridden]
        return [one for one in known if one.until > self.at and (one.id, one.starts_at) in begun]

    def _until(self, end: datetime) -> datetime:
        return min(end, self.at + LONGEST)

    def begun(self) -> set[Spanned]:
        """Each silence and window with the begin of its present span."""
        spans = [(one.id, one.span(self.at)) for one in self.silences]
        spans += [(str(one.window.id), one.span) for one in self.windows]
        return {(id_, span.starts_at) for id_, span in spans if span is not None}


def _firing(row: IncidentRow) -> Iterator[Reported]:
    members = MemberAlert.objects.filter(incident=row.pk, resolved=False).order_by("pk")
    ids = [str(alert) for alert in members.values_list("alert", flat=True)]
    for start in range(0, len(ids), AT_ONCE):
        for event in firing_alerts(ids[start : start + AT_ONCE]):
            yield reported_from(event.body)


def _can_be_suppressed(row: IncidentRow) -> bool:
    """Whether alerts alone speak for it: what an analyzer found or a person reported, no silence of alerts covers."""
    return row.firing > 0 and row.findings == 0 and _of_alerts(row)


def _of_alerts(row: IncidentRow) -> bool:
    return row.opened_by == ACTOR


_seen: set[Spanned] = set()
"""The silences and windows whose begin this process has acted on."""


def newly_covered(now: datetime, but: Collection[str] = ()) -> list[str]:
    """Incidents that are covered since a silence or window began that was not seen before."""
    covers = Covers(now)
    begun = covers.begun()
    fresh = begun - _seen
    _seen.intersection_update(begun)
    if not fresh:
        return []
    _seen.update(fresh)
    rows = _candidates().exclude(pk__in=list(but)).order_by("-number")[:MOST]
    return [str(row.pk) for row in rows if covers.of(row) is not None]


def _candidates() -> QuerySet[IncidentRow]:
    return IncidentRow.objects.filter(state__in=AWAKE, firing__gt=0, findings=0, opened_by=ACTOR)


def suppress(ids: Sequence[str], now: datetime) -> int:
    """Have those of the incidents that are covered notify nobody; how many. In the caller's transaction."""
    covers = Covers(now)
    rows = list(IncidentRow.objects.select_for_update().filter(pk__in=ids).order_by("number"))
    relevant = [
        LockedCommand(row, cover.command, Context(ACTOR))
        for row in rows
        if (cover := covers.of(row)) is not None
    ]
    return len(record_together(relevant, now))


def overriding(incident: str, now: datetime) -> tuple[Mapping[str, Any], ...]:
    """The suppressions that a person overrides who has an incident notify at `now`; none where nothing covers it."""
    row = IncidentRow.objects.filter(pk=incident).first()
    return () if row is None else Covers(now).overriding(row)


def overridden(incident: str, now: datetime) -> list[Overridden]:
    """The silences and windows in force at `now` in spite of which an incident notifies."""
    row = IncidentRow.objects.filter(pk=incident).only("overridden").first()
    return [] if row is None or not row.overridden else Covers(now).overridden(row)


def resume(silence: UUID, context: Context) -> list[CommandResult]:
    """Incidents that this silence covered notify again; their escalation starts anew. In the caller's transaction."""
    rows = IncidentRow.objects.select_for_update().filter(silence=silence, state="snoozed").order_by("number")
    return [record_on(row, c.Undo("snooze"), context) for row in rows]


def covered_by(silences: Iterable[UUID]) -> dict[str, int]:
    """By silence, how many firing alerts are in incidents that it covers."""
    rows = IncidentRow.objects.filter(silence__in=list(silences), state="snoozed")
    counted: dict[str, int] = {}
    for silence, firing in rows.values_list("silence", "firing"):
        counted[str(silence)] = counted.get(str(silence), 0) + firing
    return counted


def cancelled_maintenance(now: datetime, but: Collection[str] = ()) -> list[str]:
    """Incidents that sleep for planned work or a silence which was called off, ended early, or is about something else
    by now.

    One that sleeps until a window or silence ends that is in force is taken to be of it: thousands may sleep for one.
    """
    covers = Covers(now)
    spans = [one.span for one in covers.windows]
    spans += [span for one in covers.silences if (span := one.span(now)) is not None]
    asleep = IncidentRow.objects.filter(state="snoozed", snoozed_by=ACTOR, snoozed_until__gt=now)
    rest = asleep.exclude(snoozed_until__in=[one.ends_at for one in spans])
    rest = rest.exclude(pk__in=list(but)).order_by("number")
    ids, found = list(rest.values_list("pk", flat=True)), list[str]()
    for start in range(0, len(ids), AT_ONCE):
        found += _uncovered(ids[start : start + AT_ONCE], covers)
        if len(found) >= AT_ONCE:
            break
    return found[:AT_ONCE]


def _uncovered(incidents: Sequence[UUID], covers: Covers) -> list[str]:
    """Those of them in which something fires that nobody works on."""
    members = MemberAlert.objects.filter(incident__in=incidents, resolved=False)
    home = {str(alert): str(pk) for pk, alert in members.values_list("incident_id", "alert")}
    alerts = [reported_from(event.body) for event in firing_alerts(list(home))]
    awake = {home[alert.alert] for alert in alerts if covers.of_alert(alert) is None}
    return [str(pk) for pk in incidents if str(pk) in awake]


def unsnooze_cancelled(ids: Sequence[str], now: datetime) -> int:
    """As if they had not been put to sleep; how many of them still were."""
    asleep = IncidentRow.objects.filter(pk__in=ids, state="snoozed", snoozed_by=ACTOR).order_by("number")
    rows = list(asleep.select_for_update())
    for row in rows:
        record_on(row, c.Undo("snooze"), Context(ACTOR), now)
    return len(rows)
