"""The models that a process keeps of resolved incidents: made anew when those have changed, at a bounded cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any, Final, Generic, TypeVar

from django.db import connection

from incidents.domain.similarity.text import Described
from incidents.incident.models import IncidentRow

LATEST: Final = 20_000
"""Resolved incidents that are looked at: the latest by number."""
SPEND: Final = 20
"""A model is kept for so many times as long as it took to make, so that learning takes a twentieth of the time."""
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A resolved incident: its id, what it says, the team that resolved it, whether a person said what it was, its
    severity, and from when until when it was open."""

    id: Any
    described: Described
    team: str
    confirmed: bool
    severity: str
    opened_at: datetime
    resolved_at: datetime


@dataclass(slots=True)
class CachedModel(Generic[M]):
    """A model of the latest resolved incidents, which `make` gets in the order of their numbers."""

    make: Callable[[list[Resolved]], M]
    _lock: Lock = field(default_factory=Lock)
    _made: M | None = None
    _of: tuple[Any, ...] = ()
    _until: float = 0.0

    def model(self) -> M:
        with self._lock:
            elsewhere = self._of[:1] != (connection.settings_dict["NAME"],)
            if self._made is None or elsewhere or time.monotonic() >= self._until:
                self._look()
            assert self._made is not None
            return self._made

    def _look(self) -> None:
        began = time.perf_counter()
        rows = IncidentRow.objects.filter(state="resolved", merged_into=None).order_by("-number")
        database = connection.settings_dict["NAME"]
        stands = (database, *rows.values_list("pk", "position")[:LATEST])
        if self._made is None or stands != self._of:
            fields = (
                *("pk", "title", "component", "labels", "confirmed_cause", "findings", "team"),
                *("severity", "opened_at", "resolved_at"),
            )
            pairs = list(rows.values_list(*fields)[:LATEST])[::-1]
            self._made = self.make([_resolved(*one) for one in pairs])
            self._of = stands
        self._until = time.monotonic() + SPEND * (time.perf_counter() - began)


def _resolved(
    pk: Any, title: str, component: str | None, labels: Any, confirmed: str | None, findings: int, team: str,
    severity: str, opened_at: datetime, resolved_at: datetime,
) -> Resolved:  # fmt: skip
    cause = confirmed or (component if findings else None)
    described = Described(title, component, labels, cause)
    return Resolved(pk, described, team, confirmed is not None, severity, opened_at, resolved_at)
