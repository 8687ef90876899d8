"""What holds alerts back at a moment: silences, maintenance windows and inhibition, the first of them that does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from incidents.catalog.models import silences_in_force
from incidents.correlation.inhibition import Inhibition
from incidents.correlation.models import InhibitingAlert, MaintenanceWindow
from incidents.domain.alerting import Reported
from incidents.domain.maintaining import InForce, first_that_covers, in_force
from incidents.domain.silencing import first_that_holds
from incidents.projections.models import SuppressedAlert


@dataclass(frozen=True, slots=True)
class Hold:
    """What an alert is held by, and why it called nobody."""

    by: str
    why: str


class Holding:
    """What is in force at `at`. Inhibition is as it stands: whoever asks has told it what fires (`Inhibition.hear`)."""

    def __init__(self, at: datetime) -> None:
        self._at = at
        self._silences = silences_in_force(at)
        self._windows = windows_in_force(at)
        self.inhibition = Inhibition()

    def holds(self, alerts: Sequence[Reported]) -> dict[str, Hold]:
        """By alert, of those that call nobody, what holds them."""
        found: dict[str, Hold] = {}
        for alert in alerts:
            silence = first_that_holds(self._silences, alert.labels, self._at)
            window = first_that_covers(self._windows, "hold", alert.component, alert.labels)
            if silence is not None:
                found[alert.alert] = Hold(silence.id, silence.why(self._at))
            elif window is not None:
                found[alert.alert] = Hold(window.window.id, window.why)
        rest = [alert for alert in alerts if alert.alert not in found]
        inhibited = self.inhibition.muted({alert.alert: alert.labels for alert in rest})
        return found | {alert: Hold(str(key), why) for alert, (key, why) in inhibited.items()}

    def quiet(self, component: str | None, labels: Mapping[str, str]) -> InForce | None:
        """The window in which tickets about this component sleep."""
        return first_that_covers(self._windows, "quiet", component, labels)

    def let_go(self) -> QuerySet[SuppressedAlert]:
        """Alerts that are held by nothing that is in force: their time is over, or what inhibited them is."""
        holding = [silence.id for silence in self._silences]
        holding += [one.window.id for one in self._windows if one.window.mode == "hold"]
        inhibiting = InhibitingAlert.objects.filter(key=OuterRef("silence"))
        return SuppressedAlert.objects.exclude(silence__in=holding).exclude(Exists(inhibiting))


def windows_in_force(at: datetime) -> list[InForce]:
    """The one that ends last first."""
    # What recurs is looked at whenever it began: its times are found by its rule.
    rows = MaintenanceWindow.objects.filter(starts_at__lte=at).exclude(rule="", ends_at__lte=at)
    return in_force([row.window for row in rows], at)
