"""Silences as people and their programs make and end them, and what they hold back."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.db.models import Count
from django.utils import timezone

from incidents import queries
from incidents.catalog.models import Silence
from incidents.domain.silencing import matchers_from
from incidents.domain.values import Invalid, check_line, check_text
from incidents.projections.models import SuppressedAlert
from ingest.queries import Alert, alerts

LONGEST = timedelta(days=366)
State = Literal["active", "pending", "expired"]


def create_silence(
    matchers: object, starts_at: datetime | None, ends_at: datetime, created_by: str, comment: object
) -> Silence:
    """Alerts that every matcher fits call nobody from `starts_at` (None: now) until `ends_at`. Raises Invalid."""
    now = timezone.now()
    held = matchers_from(matchers)
    start = max(starts_at or now, now)
    if ends_at <= start:
        raise Invalid("ends_at", "must be later than the start and than now")
    if ends_at - start > LONGEST:
        raise Invalid("ends_at", f"must be at most {LONGEST.days} days after the start")
    return Silence.objects.create(
        matchers=[matcher.as_json() for matcher in held],
        starts_at=start,
        ends_at=ends_at,
        created_by=check_line("created_by", created_by, 255),
        comment=check_text("comment", comment, 2_000, blank=False),
    )


def find_silence(id: str) -> Silence | None:
    try:
        return Silence.objects.filter(pk=uuid.UUID(id)).first()
    except ValueError:
        return None


def end_silence(row: Silence) -> bool:
    """End it now; says whether it was not over yet. What still fires gets its ticket within a minute."""
    now = timezone.now()
    if row.ends_at <= now:
        return False
    row.ends_at, row.starts_at = now, min(row.starts_at, now)
    row.save(update_fields=["starts_at", "ends_at", "updated_at"])
    return True


def state_of(row: Silence, now: datetime) -> State:
    return "expired" if row.ends_at <= now else "pending" if row.starts_at > now else "active"


def by_state(rows: Iterable[Silence]) -> dict[State, list[Silence]]:
    """Active first, then those to come, then those that are over."""
    found: dict[State, list[Silence]] = {"active": [], "pending": [], "expired": []}
    now = timezone.now()
    for row in rows:
        found[state_of(row, now)].append(row)
    return found


@dataclass(frozen=True, slots=True)
class Held:
    """A firing alert that calls nobody, why, and since when."""

    alert: Alert
    why: str
    at: datetime


def held_alerts(limit: int = 100) -> tuple[list[Held], int]:
    """The latest alerts that call nobody, and how many there are in all."""
    rows = list(SuppressedAlert.objects.order_by("-at", "alert")[:limit])
    known = {one.id: one for one in alerts([str(row.alert) for row in rows])}
    shown = [Held(known[str(row.alert)], row.why, row.at) for row in rows if str(row.alert) in known]
    return shown, SuppressedAlert.objects.count()


def holding() -> Mapping[str, int]:
    """How many firing alerts each silence holds back, by its id."""
    counted = SuppressedAlert.objects.values_list("silence").annotate(n=Count("pk")).order_by()
    return {str(silence): count for silence, count in counted}


def labels_in_common(reference: str, most: int = 500) -> dict[str, str]:
    """The labels that all alerts of a ticket have in common, of its first `most`. Raises NoSuchIncident."""
    found, _ = queries.members(reference, most)
    labels = [dict(one.alert.labels) for one in found if one.status != "resolved"]
    if not labels:
        return {}
    return {name: text for name, text in labels[0].items() if all(o.get(name) == text for o in labels[1:])}
