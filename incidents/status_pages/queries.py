"""Queries of status pages: notices, the state of services, drafts."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db.models import Q

from incidents.alerts.correlate import DEFAULT_REGION
from incidents.components.impact import blast_of
from incidents.domain.incident.state import Incident
from incidents.domain.status_pages import (
    DAYS,
    NO_DATA,
    Day,
    Draft,
    Notice,
    PublicService,
    draft,
    internal_names,
    overall_words,
    public_json,
    states_of,
    strips,
    worst,
)
from incidents.domain.status_pages import STATES as WORDS
from incidents.domain.values import rfc3339
from incidents.status_pages.models import StatusNotice, StatusPage
from incidents.status_pages.projection import notice_of
from ingest.queries import now_utc

MOST_PAST: Final = 50
"""Ended notices of a page, the newest ones; the strips count up to MOST_COUNTED."""
MOST_COUNTED: Final = 1_000
MOST_PEOPLE: Final = 5_000


class UnknownStatusPageError(LookupError):
    """There is no such page, or no such notice on it; the message says which."""


def page_called(slug: str) -> StatusPage:
    """Raises UnknownStatusPageError."""
    found = StatusPage.objects.select_related("team").filter(slug=slug.replace("\0", "")).first()
    if found is None:
        raise UnknownStatusPageError(f"no status page {slug[:60]}")
    return found


def notices_of(page: StatusPage, now: datetime) -> list[Notice]:
    """Open ones and those of the last 90 days, the newest first, without withdrawn ones."""
    since = now - timedelta(days=DAYS)
    rows = StatusNotice.objects.filter(Q(ended_at=None) | Q(ended_at__gte=since), page=page.slug)
    return [notice_of(row) for row in rows.filter(withdrawn=False)[:MOST_COUNTED]]


def notice_called(id_: str) -> Notice:
    """Raises UnknownStatusPageError."""
    try:
        row = StatusNotice.objects.filter(pk=uuid.UUID(id_)).first()
    except ValueError:
        row = None
    if row is None:
        raise UnknownStatusPageError(f"no notice {id_[:60]}")
    return notice_of(row)


def notices_of_incident(incident_id: str) -> list[Notice]:
    """Notices that were drafted from an incident, the newest first, without withdrawn ones."""
    return [notice_of(row) for row in StatusNotice.objects.filter(incident=incident_id, withdrawn=False)]


# What a page shows
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """A service with its state now and on each of the last 90 days."""

    service: PublicService
    state: str
    days: Sequence[Day]

    @property
    def words(self) -> str:
        return WORDS[self.state]

    @property
    def bad_days(self) -> list[tuple[int, Day]]:
        """Days on which it was not operational, with their places in the strip."""
        good = ("operational", NO_DATA)
        return [(place, one) for place, one in enumerate(self.days) if one.state not in good]

    @property
    def good_places(self) -> list[int]:
        """Places of operational days."""
        return [place for place, one in enumerate(self.days) if one.state == "operational"]

    @property
    def empty_places(self) -> list[int]:
        """Places of days without data."""
        return [place for place, one in enumerate(self.days) if one.state == NO_DATA]

    @property
    def summary(self) -> str:
        """The strip in words."""
        bad = [one for _, one in self.bad_days]
        shown = "; ".join(one.words for one in bad[-5:])
        more = f"; and {len(bad) - 5} earlier days" if len(bad) > 5 else ""
        without = len(self.empty_places)
        known = "Today" if DAYS - without == 1 else f"Last {DAYS - without} days"
        before = f"; no data for the {without} days before" if without else ""
        return f"{known}: {shown}{more}{before}" if bad else f"{known}: operational{before}"


@dataclass(frozen=True, slots=True)
class PageStatus:
    """All that a page shows, and nothing else: it is what is cached and sent to strangers."""

    slug: str
    name: str
    description: str
    state: str
    groups: Sequence[tuple[str, Sequence[ServiceStatus]]]
    """Services by group, in the order of the page."""
    current: Sequence[Notice]
    scheduled: Sequence[Notice]
    past: Sequence[Notice]
    at: datetime
    names: Mapping[str, str]
    """Names of services by key."""

    @property
    def title(self) -> str:
        """The name with the word "status", once."""
        return self.name if "status" in self.name.lower().split() else f"{self.name} status"

    @property
    def words(self) -> str:
        return overall_words(self.state)

    def changed_at(self) -> datetime | None:
        """Time of the last update's publication or edit."""
        times = [
            one.edited_at or one.at
            for notice in (*self.current, *self.scheduled, *self.past)
            for one in notice.updates
        ]
        return max(times, default=None)


def status_of_page(page: StatusPage, now: datetime) -> PageStatus:
    notices = notices_of(page, now)
    entries = page.entries
    keys = [one.key for one in entries]
    states, days = states_of(keys, notices), strips(keys, notices, now, page.made_at)
    groups: dict[str, list[ServiceStatus]] = {}
    for one in entries:
        groups.setdefault(one.group, []).append(ServiceStatus(one, states[one.key], days[one.key]))
    live = [one for one in notices if one.ended_at is None]
    return PageStatus(
        slug=page.slug,
        name=page.name,
        description=page.description,
        state=worst(states.values()),
        groups=list(groups.items()),
        current=[one for one in live if one.last.status != "scheduled"],
        scheduled=[one for one in live if one.last.status == "scheduled"],
        past=[one for one in notices if one.ended_at is not None][:MOST_PAST],
        at=now,
        names={one.key: one.name for one in entries},
    )


def as_json(status: PageStatus, url: str) -> dict[str, Any]:
    changed = status.changed_at()
    return {
        "page": {
            "slug": status.slug,
            "name": status.name,
            "description": status.description,
            "url": url,
            "updated_at": None if changed is None else rfc3339(changed),
        },
        "status": {"state": status.state, "words": status.words},
        "services": [
            {
                "key": one.service.key,
                "name": one.service.name,
                "group": group,
                "state": one.state,
                "days": [{"day": day.day.isoformat(), "state": day.state} for day in one.days],
            }
            for group, services in status.groups
            for one in services
        ],
        "current": [json_of(one, status.names) for one in status.current],
        "scheduled": [json_of(one, status.names) for one in status.scheduled],
        "past": [json_of(one, status.names) for one in status.past],
    }


def json_of(notice: Notice, names: Mapping[str, str]) -> dict[str, Any]:
    """A notice without services that left the page."""
    found = public_json(notice)
    for one in found["updates"]:
        one["services"] = {key: state for key, state in one["services"].items() if key in names}
    return found


# Drafts
# ----------------------------------------------------------------------------------------------------------
def draft_of(page: StatusPage, it: Incident) -> Draft:
    """A first update on an incident; nothing is stored."""
    return draft(it, _hit(page, it), people())


def leaks(text: str, it: Incident | None) -> list[str]:
    """Internal names in a text that is about to be published."""
    return internal_names(text, it, people())


def people() -> list[str]:
    """User names, at most MOST_PEOPLE."""
    users = get_user_model()
    return list(users.objects.values_list(users.USERNAME_FIELD, flat=True)[:MOST_PEOPLE])


def _hit(page: StatusPage, it: Incident) -> list[PublicService]:
    """Services of the page that stand for the component of an incident, its service, or one that needs it."""
    services, components = {one for one in (it.service,) if one}, {one for one in (it.component,) if one}
    if it.component is not None:
        graph = blast_of(it.component, it.region or DEFAULT_REGION, it.resolved_at or now_utc())
        services |= {one.slug for one in graph.services}
    return [one for one in page.entries if one.stands_for(services, components)]


def pages_of_team(team: str) -> list[str]:
    """Status pages of a team, in words."""
    return [f"the status page {slug}" for slug in _slugs(team__slug=team)]


def pages_of_service(service: str) -> list[str]:
    """Status pages with a service of Dossier, in words."""
    return [f"the status page {slug}" for slug in _slugs(services__contains=[{"covers": [service]}])]


def _slugs(**wanted: Any) -> list[str]:
    return list(StatusPage.objects.filter(**wanted).values_list("slug", flat=True))
