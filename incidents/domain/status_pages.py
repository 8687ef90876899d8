"""Status pages: what outsiders read of failures and maintenance, as people publish it. Pure.

A notice is a failure or a maintenance on a page; its updates are the events of its stream. States and statuses have the
words of Statuspage. Services of a page have public names; what they stand for is only read to draft a notice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, Final

from incidents.domain.incident.state import Incident
from incidents.domain.values import (
    CommandRefusedError,
    InvalidValueError,
    check_line,
    check_list,
    check_object,
    check_text,
    parse_rfc3339,
    rfc3339,
)
from ingest.log.types import Event
from ingest.telemetry.kinds.declare import is_component

PUBLISHED: Final = "status_page.update_published"
EDITED: Final = "status_page.update_edited"
WITHDRAWN: Final = "status_page.notice_withdrawn"
EVENT_TYPES: Final = (PUBLISHED, EDITED, WITHDRAWN)

OPERATIONAL: Final = "operational"
NO_DATA: Final = "no_data"
"""State of a day on which the page was not there yet."""
STATES: Final[Mapping[str, str]] = {
    OPERATIONAL: "Operational",
    "maintenance": "Under maintenance",
    "degraded_performance": "Degraded performance",
    "partial_outage": "Partial outage",
    "major_outage": "Major outage",
}
"""States of a service in words, the best one first."""
STATUSES: Final[Mapping[str, Mapping[str, str]]] = {
    "incident": {
        "investigating": "Investigating",
        "identified": "Identified",
        "monitoring": "Monitoring",
        "resolved": "Resolved",
    },
    "maintenance": {"scheduled": "Scheduled", "in_progress": "In progress", "completed": "Completed"},
}
"""Statuses of each kind of notice in words, in their usual order; the last one ends it."""
ENDS: Final = frozenset({"resolved", "completed"})
AHEAD: Final = "scheduled"
"""A maintenance of this status has not begun: its services are as they were."""
DAYS: Final = 90
MOST_SERVICES: Final = 100
MOST_UPDATES: Final = 200
LONGEST_TEXT: Final = 5_000
LONGEST_NAME: Final = 100
_KEY = re.compile(r"[^a-z0-9]+")
_NAMED = re.compile(r"(?<![\w/:.])[a-z][a-z0-9_]*/[\w.~:*-]+|(?<![\w&/])#\d{1,9}\b")
"""Words that look like a component or the number of an incident."""
_URL = re.compile(r"https?://\S+")
_STATE_OF: Final = {
    "critical": "major_outage",
    "error": "partial_outage",
    "warning": "degraded_performance",
    "info": "degraded_performance",
}
"""The state that a draft proposes, by the severity of the incident."""


# Services of a page
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class PublicService:
    """`covers` has slugs of services and globs over components, which no page shows."""

    key: str
    name: str
    group: str = ""
    covers: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {"key": self.key, "name": self.name, "group": self.group, "covers": list(self.covers)}

    def stands_for(self, services: Collection[str], components: Collection[str]) -> bool:
        return any(
            one in services if _is_slug(one) else any(fnmatchcase(component, one) for component in components)
            for one in self.covers
        )


def _is_slug(text: str) -> bool:
    return "/" not in text and "*" not in text


def slugs_in(services: Iterable[PublicService]) -> set[str]:
    """The services of Dossier that those of a page stand for."""
    return {text for one in services for text in one.covers if _is_slug(text)}


def services_from(given: object) -> list[PublicService]:
    """The services of a page as written; keys that are left out are made of the names. Raises InvalidValueError."""
    found: list[PublicService] = []
    for place, written in enumerate(check_list("services", given, MOST_SERVICES)):
        field = f"services[{place}]"
        one = check_object(field, written, ("key", "name", "group", "covers"))
        name = check_line(f"{field}.name", one.get("name", ""), LONGEST_NAME)
        key = check_line(
            f"{field}.key", one.get("key") or _KEY.sub("-", name.lower()).strip("-") or "service"
        )
        if _KEY.sub("-", key) != key:
            raise InvalidValueError(f"{field}.key", "must have lower-case letters, digits and single dashes")
        covers = one.get("covers") or []
        if not isinstance(covers, list | tuple) or len(covers) > MOST_SERVICES:
            raise InvalidValueError(f"{field}.covers", f"must be a list of at most {MOST_SERVICES} texts")
        found.append(
            PublicService(
                key,
                name,
                check_line(f"{field}.group", one.get("group") or "", LONGEST_NAME, blank=True),
                tuple(check_line(f"{field}.covers", text, 200) for text in covers),
            )
        )
    for field, texts in (("key", [one.key for one in found]), ("name", [one.name for one in found])):
        if twice := next((text for text in texts if texts.count(text) > 1), None):
            raise InvalidValueError("services", f"have the {field} {twice!r} twice")
    return found


def services_in(stored: Iterable[Mapping[str, Any]]) -> list[PublicService]:
    return [PublicService(one["key"], one["name"], one["group"], tuple(one["covers"])) for one in stored]


# Notices
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """`number` counts from 1; `services` has the state of each service by its key."""

    number: int
    at: datetime
    status: str
    text: str
    services: Mapping[str, str]
    edited_at: datetime | None = None

    @property
    def stamp(self) -> str:
        return rfc3339(self.at)

    @property
    def time_words(self) -> str:
        """In UTC: a cached page is the same for all who read it."""
        return f"{self.at.astimezone(UTC):%-d %b %Y, %H:%M} UTC"

    def as_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "at": rfc3339(self.at),
            "status": self.status,
            "text": self.text,
            "services": dict(self.services),
            "edited_at": None if self.edited_at is None else rfc3339(self.edited_at),
        }


@dataclass(frozen=True, slots=True)
class Notice:
    """A failure or a maintenance on the page with the slug `page`. `incident` is an id, which no page shows."""

    id: str
    page: str
    kind: str
    title: str
    incident: str | None
    updates: tuple[StatusUpdate, ...]
    withdrawn: bool = False

    @property
    def last(self) -> StatusUpdate:
        return self.updates[-1]

    @property
    def began_at(self) -> datetime:
        return self.updates[0].at

    @property
    def ended_at(self) -> datetime | None:
        return self.last.at if self.last.status in ENDS else None

    @property
    def status_words(self) -> str:
        return STATUSES[self.kind][self.last.status]

    def states(self) -> Mapping[str, str]:
        """The state of each service that it says something of, now."""
        return {} if self.withdrawn else _effective(self.last)


def _effective(update: StatusUpdate) -> Mapping[str, str]:
    return {} if update.status in ENDS or update.status == AHEAD else update.services


@dataclass(frozen=True, slots=True)
class Publish:
    """An update as somebody wrote it; of a new notice where `kind`, `title` and the page are its own."""

    status: object
    text: object
    services: object
    kind: object = "incident"
    title: object = None
    incident: str | None = None


def publish(
    notice: Notice | None, id_: str, page: str, keys: Collection[str], command: Publish
) -> dict[str, Any]:
    """The body of PUBLISHED. `keys` are those of the services of the page. Raises InvalidValueError,
    CommandRefusedError."""
    if notice is not None and notice.withdrawn:
        raise CommandRefusedError("this notice was withdrawn; publish a new one")
    if notice is not None and len(notice.updates) >= MOST_UPDATES:
        raise CommandRefusedError(f"a notice has at most {MOST_UPDATES} updates; publish a new one")
    kind = notice.kind if notice else command.kind
    if not isinstance(kind, str) or kind not in STATUSES:
        raise InvalidValueError("kind", f"must be one of {', '.join(STATUSES)}")
    if not isinstance(command.status, str) or command.status not in STATUSES[kind]:
        raise InvalidValueError("status", f"must be one of {', '.join(STATUSES[kind])}")
    title = notice.title if notice is not None and command.title is None else command.title
    return {
        "id": id_,
        "page": page,
        "kind": kind,
        "title": check_line("title", title or "", LONGEST_NAME * 2),
        "status": command.status,
        "text": check_text("text", command.text, LONGEST_TEXT, blank=False),
        "services": _states_from(command.services, keys),
        "incident": notice.incident if notice else command.incident,
    }


def _states_from(given: object, keys: Collection[str]) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise InvalidValueError("services", "must be an object: key of a service, and its state")
    for key, state in given.items():
        if key not in keys:
            raise InvalidValueError("services", f"{str(key)[:60]!r} is not a service of this page")
        if state not in STATES:
            raise InvalidValueError("services", f"{key} must be one of {', '.join(STATES)}")
    return dict(given)


def edit(notice: Notice, number: int, text: object) -> dict[str, Any] | None:
    """The body of EDITED; None where nothing changes. Raises InvalidValueError, CommandRefusedError."""
    if notice.withdrawn:
        raise CommandRefusedError("this notice was withdrawn")
    if not 1 <= number <= len(notice.updates):
        raise CommandRefusedError(f"this notice has no update {number}")
    written = check_text("text", text, LONGEST_TEXT, blank=False)
    if written == notice.updates[number - 1].text:
        return None
    return {"id": notice.id, "page": notice.page, "number": number, "text": written}


def withdraw(notice: Notice) -> dict[str, Any] | None:
    """The body of WITHDRAWN; None where it was withdrawn before."""
    return None if notice.withdrawn else {"id": notice.id, "page": notice.page}


def evolve(notice: Notice | None, event: Event) -> Notice:
    body = event.body
    if event.type == PUBLISHED:
        updates = () if notice is None else notice.updates
        new = StatusUpdate(
            len(updates) + 1, event.occurred_at, body["status"], body["text"], body["services"]
        )
        return Notice(
            body["id"], body["page"], body["kind"], body["title"], body["incident"], (*updates, new)
        )
    assert notice is not None, f"{event.id}: the first event of a notice is its first update"
    if event.type == WITHDRAWN:
        return replace(notice, withdrawn=True)
    place = body["number"] - 1
    changed = replace(notice.updates[place], text=body["text"], edited_at=event.occurred_at)
    return replace(notice, updates=(*notice.updates[:place], changed, *notice.updates[place + 1 :]))


def fold(events: Iterable[Event]) -> Notice | None:
    notice = None
    for event in events:
        notice = evolve(notice, event)
    return notice


def updates_from(stored: Iterable[Mapping[str, Any]]) -> tuple[StatusUpdate, ...]:
    return tuple(
        StatusUpdate(
            one["number"],
            parse_rfc3339(one["at"]),
            one["status"],
            one["text"],
            one["services"],
            None if one["edited_at"] is None else parse_rfc3339(one["edited_at"]),
        )
        for one in stored
    )


# What a page shows
# ----------------------------------------------------------------------------------------------------------
_RANK: Final = {state: place for place, state in enumerate(STATES)}


def worst(states: Iterable[str]) -> str:
    return max(states, key=_RANK.__getitem__, default=OPERATIONAL)


def states_of(keys: Iterable[str], notices: Iterable[Notice]) -> dict[str, str]:
    """The state of each service: the worst that an open notice has for it."""
    found = dict.fromkeys(keys, OPERATIONAL)
    for notice in notices:
        for key, state in notice.states().items():
            if key in found:
                found[key] = worst((found[key], state))
    return found


def overall_words(state: str) -> str:
    return "All services operational" if state == OPERATIONAL else STATES[state]


@dataclass(frozen=True, slots=True)
class Day:
    day: date
    state: str

    @property
    def words(self) -> str:
        return f"{self.day:%-d %b %Y}: {STATES[self.state].lower() if self.state in STATES else 'no data'}"


def strips(
    keys: Iterable[str], notices: Iterable[Notice], now: datetime, since: datetime
) -> dict[str, list[Day]]:
    """The worst state of each service on each of the last DAYS days (UTC), today last; NO_DATA on days before the page
    was made (`since`) without a notice."""
    today, first = now.astimezone(UTC).date(), since.astimezone(UTC).date()
    days = [today - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]
    blank = {day: NO_DATA if day < first else OPERATIONAL for day in days}
    found = {key: dict(blank) for key in keys}
    for notice in notices:
        if notice.withdrawn:
            continue
        for update, until in zip(notice.updates, [*(one.at for one in notice.updates[1:]), now], strict=True):
            for key, state in _effective(update).items():
                if key in found:
                    _mark(found[key], update.at, until, state)
    return {key: [Day(day, state) for day, state in strip.items()] for key, strip in found.items()}


def _mark(strip: dict[date, str], start: datetime, end: datetime, state: str) -> None:
    day, last = start.astimezone(UTC).date(), end.astimezone(UTC).date()
    day = max(day, next(iter(strip)))
    while day <= last:
        if day in strip:
            strip[day] = worst((state,) if strip[day] == NO_DATA else (strip[day], state))
        day += timedelta(days=1)


def public_json(notice: Notice) -> dict[str, Any]:
    """A notice as strangers get it: without its incident and without people."""
    return {
        "id": notice.id,
        "kind": notice.kind,
        "title": notice.title,
        "status": notice.last.status,
        "began_at": rfc3339(notice.began_at),
        "ended_at": None if notice.ended_at is None else rfc3339(notice.ended_at),
        "updates": [one.as_json() for one in reversed(notice.updates)],
    }


# Drafts
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Draft:
    """An update as it could be published: nothing internal is in it."""

    title: str
    status: str
    text: str
    services: Mapping[str, str]


def draft(it: Incident, hit: Sequence[PublicService], people: Collection[str]) -> Draft:
    """The first update on an incident; `hit` are the services of the page that it hurts.

    The incident's own title is used where no internal name is in it; `people` are user names.
    """
    names = listed([one.name for one in hit])
    on = f"with {names}" if names else "with our service"
    own = not internal_names(it.title, it, people)
    status = status_of(it)
    return Draft(
        title=it.title[: LONGEST_NAME * 2] if own else f"Problem {on}",
        status=status,
        text={
            "investigating": f"We are investigating a problem {on}.",
            "identified": f"The cause of the problem {on} has been identified. We are working on a fix.",
            "monitoring": f"The problem {on} no longer occurs. We are monitoring the result.",
            "resolved": f"The problem {on} is resolved.",
        }[status],
        services={} if status == "resolved" else {one.key: _STATE_OF[it.severity] for one in hit},
    )


def status_of(it: Incident) -> str:
    """The status that the state of an incident suggests."""
    if it.state == "resolved":
        return "resolved"
    if it.state == "snoozed":
        return "monitoring"
    return "identified" if it.state == "acknowledged" and (it.confidence or 0) >= 0.9 else "investigating"


def listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if names[1:] else "".join(names)


def internal_names(text: str, it: Incident | None, people: Collection[str] = ()) -> list[str]:
    """Components, numbers of incidents and user names in a text, in their order."""
    text = _URL.sub(" ", text)
    known = {one for one in (it.component,) if one} if it is not None else set()
    found = [match[0] for match in _NAMED.finditer(text) if match[0][0] == "#" or is_component(match[0])]
    found += [one for one in sorted(known) if one in text and one not in found]
    words = {word.strip(".@+-").lower() for word in re.findall(r"[\w.@+-]+", text)}
    found += [one for one in sorted(people) if len(one) > 2 and one.strip(".@+-").lower() in words]
    return list(dict.fromkeys(found))
