"""Incidents all of whose firing alerts are silenced or under maintenance: nobody is notified until that ends.

Whoever is about to notify asks here first (`escalation.sweeping`). A sweep does the same within a second or two of the
begin of a silence, so that lists show it. Notifications resume when the silence ends or no longer covers every firing
alert (`waking`), when an alert that it does not cover joins (`alerting`), and when an analyzer blames the incident.

A person who resumes the notifications of one incident overrides what covers it then: an event of the incident names
these silences and windows, and each is ignored for this incident until it ends. A silence or window that begins later
suppresses again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet

from incidents.domain.incident import commands as c
from incidents.domain.incident.grouping import Reported, reported_from
from incidents.domain.incident.lifecycle import LONGEST_REASON
from incidents.domain.incident.snooze import LONGEST
from incidents.domain.incident.state import Overridden
from incidents.domain.suppression.maintenance import ActiveWindow
from incidents.domain.suppression.silences import Silence
from incidents.domain.time import rfc3339
from incidents.incident.models import IncidentRow, MemberAlert
from incidents.incident.repository import CommandResult, LockedCommand, record_on, record_together
from incidents.incident.rows import overridden_from
from incidents.suppression.suppressor import windows_in_force
from incidents.teams.models import silences_as_written
from ingest.queries import Context, firing_alerts

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
    """What keeps an incident from notifying: a silence or window from when until when, and why."""

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
        """What covers every alert that fires in an incident, the first of them to end; None where one is uncovered."""
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
        """What a person overrides who resumes the notifications of an incident, as bodies of its event."""
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
    members = MemberAlert.objects.filter(incident=row.pk, resting=False).order_by("pk")
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
    asked = [
        LockedCommand(row, cover.command, Context(ACTOR))
        for row in rows
        if (cover := covers.of(row)) is not None
    ]
    return len(record_together(asked, now))


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
    members = MemberAlert.objects.filter(incident__in=incidents, resting=False)
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
