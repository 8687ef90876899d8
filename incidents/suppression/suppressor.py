"""What holds alerts back at a moment: silences, maintenance windows and inhibition, the first of them that does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from incidents.domain.incident.grouping import Reported
from incidents.domain.suppression.maintenance import ActiveWindow, Window, first_that_covers, in_force
from incidents.domain.suppression.silences import first_that_holds
from incidents.domain.suppression.unreadable import passed_over
from incidents.domain.values import UNREADABLE
from incidents.incident.models import EndedSuppression, SuppressedAlert
from incidents.suppression.inhibition import Inhibition
from incidents.suppression.models import InhibitingAlert, MaintenanceWindow
from incidents.teams.models import Service, Unreadable, silences_as_written

MOST_SOURCES: Final = 10_000
"""Alerts that inhibit others that `muted` looks at."""
MOST_NAMED: Final = 10
"""Of those that inhibit the same, so many are named with each alert."""

log = structlog.get_logger("correlation")


@dataclass(frozen=True, slots=True)
class Suppression:
    """What an alert is held by, and why it called nobody."""

    by: str
    why: str


class Suppressor:
    """What is in force at `at`. Inhibition is as it stands: whoever asks has told it what fires (`Inhibition.hear`)."""

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
        for alert in alerts:
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
        holding = [silence.id for silence in self._silences]
        holding += [one.window.id for one in self._windows if one.window.mode == "hold"]
        inhibiting = InhibitingAlert.objects.filter(key=OuterRef("silence"))
        return SuppressedAlert.objects.exclude(silence__in=holding).exclude(Exists(inhibiting))


@dataclass(frozen=True, slots=True)
class MutedAlerts:
    """By alert: the alerts that inhibit it, and the maintenance windows that hold it."""

    inhibited_by: Mapping[str, list[str]]
    muted_by: Mapping[str, list[str]]


def muted(ids: Sequence[str]) -> MutedAlerts:
    """Of these alerts those that are held otherwise than by a silence."""
    rows = SuppressedAlert.objects.filter(alert__in=ids).values_list("alert", "silence")
    held = {str(alert): by for alert, by in rows}
    windows = MaintenanceWindow.objects.filter(edition__in=set(held.values()))
    slugs = dict(windows.values_list("edition", "slug"))
    sources: dict[UUID, list[str]] = {}
    inhibiting = InhibitingAlert.objects.filter(key__in=set(held.values())).order_by("alert")
    for key, alert in inhibiting.values_list("key", "alert")[:MOST_SOURCES]:
        if len(told := sources.setdefault(key, [])) < MOST_NAMED:
            told.append(str(alert))
    return MutedAlerts(
        {alert: sources[by] for alert, by in held.items() if by in sources},
        {alert: [slugs[by]] for alert, by in held.items() if by in slugs},
    )


def forget_why(ids: Collection[str]) -> None:
    """The alerts fire, whatever held them back before."""
    SuppressedAlert.objects.filter(alert__in=ids).delete()
    EndedSuppression.objects.filter(alert__in=ids).delete()


def keep_why(ids: Collection[str], at: datetime) -> None:
    """Those of the alerts that were held back are over: that they called nobody stays explained."""
    held = SuppressedAlert.objects.filter(alert__in=ids)
    if quiet := [EndedSuppression(alert=one.alert, why=one.why, at=at) for one in held]:
        EndedSuppression.objects.filter(at__lt=at - settings.ALERT_RETENTION).delete()
        EndedSuppression.objects.bulk_create(
            quiet, update_conflicts=True, unique_fields=["alert"], update_fields=["why", "at"]
        )
        held.delete()


def windows_in_force(at: datetime) -> list[ActiveWindow]:
    """The one that ends last first."""
    return _windows(at)[0]


def _windows(at: datetime) -> tuple[list[ActiveWindow], Unreadable]:
    """Those in force, and those that may be and cannot be read: a call too many is better than none."""
    # What recurs is looked at whenever it began: its times are found by its rule.
    rows = list(MaintenanceWindow.objects.filter(starts_at__lte=at).exclude(rule="", ends_at__lte=at))
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
    return in_force(windows, at), unreadable
