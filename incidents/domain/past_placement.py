"""Recorded alerts placed anew under a configuration: the incidents that they open, join, and open as a storm. Pure.

Alerts are placed at the time at which nothing suppresses them, in that order, as `incidents.alerts.correlate` places
them: in the open incident of their group, else by `place_without_incident` in a new one or in that of a storm. Symptoms
join the incident of their cause, whatever the configuration.

An incident is open while the recorded incident of its alerts was. Where a configuration splits a recorded incident,
each part is open while its alerts fire, at most as long as the recorded one. An alert that came to no incident keeps
one open while it fires.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from incidents.domain.incident.alerts import (
    SPAN,
    Opened,
    Place,
    Reported,
    is_storm,
    place_of,
    place_without_incident,
)
from incidents.domain.routing.rules import RouteCache, Routing, RoutingTable, Subject
from incidents.domain.suppression.past import EVER, Firing


@dataclass(frozen=True, slots=True, eq=False)
class PastAlert:
    """A firing of an alert and what it said. `symptom`: it joined its incident because of the cause."""

    reported: Reported
    subject: Subject
    firing: Firing
    symptom: bool = False


class Routings:
    """Routing and place of each alert under one table."""

    def __init__(self, table: RoutingTable) -> None:
        self.table = table
        self._routes = RouteCache(table)
        self._known: dict[PastAlert, tuple[Routing, Place]] = {}

    def of(self, alert: PastAlert) -> tuple[Routing, Place]:
        if alert not in self._known:
            routing = self._routes.route(alert.subject)
            self._known[alert] = routing, place_of(alert.reported, routing)
        return self._known[alert]


@dataclass(slots=True, eq=False)
class PlacedIncident:
    """An incident under a configuration. `unit` is the recorded incident of the alert that opened it, `ends` has, by
    recorded incident, when the last of its alerts here is over, the latest one last."""

    unit: int
    first: PastAlert
    routing: Routing
    opened_at: datetime
    ends: dict[int, datetime] = field(default_factory=dict)

    def add(self, unit: int, firing: Firing) -> None:
        end = firing.end or EVER
        self.ends[unit] = max(self.ends.pop(unit, end), end)


@dataclass(slots=True)
class Placed:
    """Incidents of one recorded incident's alerts: those that they opened, and those that they are in, in the order in
    which they came there; `at` is when the first of them came."""

    opened: list[PlacedIncident] = field(default_factory=list)
    homes: dict[PlacedIncident, None] = field(default_factory=dict)
    at: datetime | None = None

    @property
    def home(self) -> PlacedIncident | None:
        return next(iter(self.homes), None)


def placed(
    units: Sequence[Sequence[PastAlert]],
    closed: Sequence[datetime | None],
    free_at: Callable[[Firing], datetime | None],
    routings: Routings,
) -> list[Placed]:
    """The alerts of each unit under a configuration. `closed` is when the recorded incident was over, EVER: it is open,
    None: the unit is none."""
    board = _Board(closed, routings)
    found = (
        (at, alert.firing.start, unit, alert)
        for unit, alerts in enumerate(units)
        for alert in alerts
        if (at := free_at(alert.firing)) is not None
    )
    for at, _, unit, alert in sorted(found, key=lambda one: one[:2]):
        board.place(unit, alert, at)
    return board.units


class _Board:
    """The incidents of a configuration while time goes on."""

    def __init__(self, closed: Sequence[datetime | None], routings: Routings) -> None:
        self._closed = closed
        self._routings = routings
        self._groups: dict[str, PlacedIncident] = {}
        self._recent: dict[str, RecentOpenings] = {}
        self.units = [Placed() for _ in closed]

    def place(self, unit: int, alert: PastAlert, at: datetime) -> None:
        of_unit = self.units[unit]
        incident = next(reversed(of_unit.homes), None) if alert.symptom else None
        if incident is None:
            incident = self._incident(unit, alert, at)
        incident.add(unit, alert.firing)
        of_unit.homes.setdefault(incident)
        if of_unit.at is None:
            of_unit.at = at

    def _incident(self, unit: int, alert: PastAlert, at: datetime) -> PlacedIncident:
        routing, place = self._routings.of(alert)
        found = self._open(place, at)
        if found is not None:
            return found
        recent = self._recent.setdefault(alert.reported.integration, RecentOpenings())
        place = recent.place_for(place, routing.team, [alert.reported], at)
        found = self._open(place, at) if is_storm(place.dedup_key) else None
        if found is not None:
            return found
        opened = PlacedIncident(unit, alert, routing, at)
        self._groups[place.group_key or place.dedup_key] = opened
        self.units[unit].opened.append(opened)
        return opened

    def _open(self, place: Place, at: datetime) -> PlacedIncident | None:
        found = self._groups.get(place.group_key or place.dedup_key)
        if found is None or (place.window is not None and found.opened_at <= at - place.window):
            return None
        is_open = any(at < self._until(found, unit) for unit in reversed(found.ends))
        return found if is_open else None

    def _until(self, incident: PlacedIncident, unit: int) -> datetime:
        closed = self._closed[unit]
        if closed is None:
            return incident.ends[unit]
        whole = len(self.units[unit].homes) == 1
        return closed if whole else min(closed, incident.ends[unit])


class RecentOpenings:
    """Openings of an integration within the span that makes a storm."""

    def __init__(self) -> None:
        self._times: deque[datetime] = deque()
        self._opened: list[Opened] = []

    def place_for(self, place: Place, team: str, alerts: Sequence[Reported], at: datetime) -> Place:
        while self._times and self._times[0] <= at - SPAN:
            self._times.popleft()
            del self._opened[0]
        found = place_without_incident(place, team, alerts, self._opened)
        self._times.extend([at] * (len(self._opened) - len(self._times)))
        return found
