"""The alerts of an incident, and the page of a receipt: what was sent, and what became of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.views.pages import page, show
from incidents import queries
from incidents.alerts.receipts import NOT_YET, outcomes_of
from incidents.commands import InvalidValueError
from incidents.domain.time import parse_rfc3339
from ingest.api.redact import masked
from ingest.queries import Alert, Position, alert_delivery

PAGE = 100
OPENING = timedelta(minutes=1)
"""How long after a delivery its page waits for an incident."""
MOST_PAGES = 10_000
LONGEST_SHOWN = 20_000
"""Characters of a payload that the page shows."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An alert of an incident, since when it stands as it does, and why it is there."""

    it: Alert
    since: datetime
    why: str = ""

    @property
    def state(self) -> str:
        return "over" if self.it.status == "resolved" else self.it.status


@dataclass(frozen=True, slots=True)
class Section:
    """One page of an incident's alerts, those that fire first."""

    alerts: list[Shown]
    total: int
    here: int
    pages: int

    @property
    def previous(self) -> int | None:
        return self.here - 1 if self.here > 1 else None

    @property
    def next(self) -> int | None:
        return self.here + 1 if self.here < self.pages else None

    @property
    def first(self) -> int:
        return (self.here - 1) * PAGE + 1

    @property
    def last(self) -> int:
        return self.first + len(self.alerts) - 1

    @property
    def why(self) -> str:
        """Why all of this page are members, where that is the same for several; else empty."""
        whys = {one.why for one in self.alerts}
        return whys.pop() if len(self.alerts) > 1 and len(whys) == 1 else ""

    @property
    def version(self) -> str:
        """Changes when what is shown does, and not merely because time passes."""
        shown = [(one.it.id, one.state, one.it.repeats, str(one.it.changed_at)) for one in self.alerts]
        return hashlib.sha256(json.dumps([self.total, shown]).encode()).hexdigest()[:16]


def section(number: str, asked: str, as_of: Position | None = None) -> Section:
    """The page of an incident's alerts that an address asks for, now or as of a moment. Raises InvalidValueError."""
    if not (asked.isascii() and asked.isdigit() and 1 <= int(asked[:9]) <= MOST_PAGES):
        raise InvalidValueError("alerts", "must be the number of a page, from 1")
    here = int(asked)
    found, total = queries.members(number, PAGE, (here - 1) * PAGE, as_of)
    whys = queries.why_members(number, [one.id for one in found])
    return Section(
        [Shown(one, _since(one), whys.get(one.id, "")) for one in found],
        total,
        here,
        max(1, ceil(total / PAGE)),
    )


def _since(one: Alert) -> datetime:
    return one.changed_at if one.status == "resolved" else one.alert.starts_at or one.changed_at


@page
@require_safe
def receipt(request: HttpRequest, id: str) -> HttpResponse:
    found = outcomes_of(id)
    if found is None:
        raise Http404("no such receipt; it may be older than the retention time")
    actor, told = found
    delivery = alert_delivery(id) if told["kind"] in ("alerts", "change") else None
    text = "" if delivery is None else _readable(delivery.payload)
    context = {
        "id": id,
        "actor": actor,
        "told": told,
        "payload": text[:LONGEST_SHOWN],
        "cut": len(text) > LONGEST_SHOWN,
        "titles": _titles(told),
        "waits": _waits(told),
        "not_yet": NOT_YET,
        "team": _team_of(told),
    }
    return show(request, "frontend/incident/receipt.html", context, section="inbox")


def _readable(payload: bytes) -> str:
    """JSON indented, anything else as it came; without the keys that some senders write into their payloads."""
    text = masked(payload.decode(errors="replace"))
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _waits(told: Mapping[str, Any]) -> bool:
    """Whether the incident of an alert that fired is opened any moment: the page then looks again by itself."""
    recent = timezone.now() - parse_rfc3339(told["recorded_at"]) < OPENING
    return recent and any(one["why"] == NOT_YET for one in told.get("alerts", ()))


def _team_of(told: Mapping[str, Any]) -> str:
    """The name of the team that has the incident of a delivery; empty where there is none."""
    if not told["incident"]:
        return ""
    team = queries.get(told["incident"]["id"]).incident.team
    return next((one.name for one in queries.teams() if one.slug == team), team)


def _titles(told: dict[str, object]) -> dict[str, str]:
    fates = told.get("alerts")
    ids = [fate["alert"] for fate in fates] if isinstance(fates, list) else []
    return queries.alert_titles(ids)
