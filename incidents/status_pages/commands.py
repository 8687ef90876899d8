"""Publish, edit and withdraw updates of status pages. Each function is one transaction.

Nothing is published by the system: each update has the person or key that published it as its actor. Raises
InvalidValueError, CommandRefusedError, ForbiddenError, UnknownStatusPageError.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from django.db import transaction

from incidents.domain.incident.commands import RecordStatusUpdate
from incidents.domain.incident.status_updates import StatusChange
from incidents.domain.status_pages import (
    EDITED,
    PUBLISHED,
    STATUSES,
    WITHDRAWN,
    Notice,
    Publish,
    edit,
    evolve,
    fold,
    publish,
    withdraw,
)
from incidents.incident.repository import record
from incidents.status_pages.mail import address_to_subscribers
from incidents.status_pages.models import StatusPage
from incidents.status_pages.projection import project, stream_of
from incidents.status_pages.queries import UnknownStatusPageError
from incidents.teams.models import allow_at
from ingest.commands import append, retrying
from ingest.queries import Context, Event, Head, NewEvent, now_utc, read_stream

MAY: Final = "publish_status"


def open_notice(slug: str, command: Publish, context: Context) -> Notice:
    """Publish the first update of a new notice."""
    return retrying(partial(_publish, slug, None, command, context))


def update_notice(slug: str, id_: str, command: Publish, context: Context) -> Notice:
    """Publish a further update."""
    return retrying(partial(_publish, slug, id_, command, context))


def edit_update(slug: str, id_: str, number: int, text: object, context: Context) -> Notice:
    """Correct the text of a published update; subscribers are not notified."""
    return retrying(partial(_edit, slug, id_, number, text, context))


def withdraw_notice(slug: str, id_: str, context: Context) -> Notice:
    """Take a notice that was published by mistake off the page, with its days in the strips."""
    return retrying(partial(_withdraw, slug, id_, context))


@transaction.atomic
def _publish(slug: str, id_: str | None, command: Publish, context: Context) -> Notice:
    page = _locked(slug, context)
    new = id_ is None
    id_ = id_ or str(uuid.uuid4())
    notice, events = (None, []) if new else _found(page, id_)
    body = publish(notice, id_, page.slug, {one.key for one in page.entries}, command)
    after = _recorded(page, notice, id_, events, PUBLISHED, body, context)
    address_to_subscribers(after)
    return after


@transaction.atomic
def _edit(slug: str, id_: str, number: int, text: object, context: Context) -> Notice:
    page = _locked(slug, context)
    notice, events = _found(page, id_)
    body = edit(notice, number, text)
    return notice if body is None else _recorded(page, notice, id_, events, EDITED, body, context)


@transaction.atomic
def _withdraw(slug: str, id_: str, context: Context) -> Notice:
    page = _locked(slug, context)
    notice, events = _found(page, id_)
    body = withdraw(notice)
    return notice if body is None else _recorded(page, notice, id_, events, WITHDRAWN, body, context)


def _locked(slug: str, context: Context) -> StatusPage:
    page = StatusPage.objects.select_for_update(of=("self",)).select_related("team").filter(slug=slug).first()
    if page is None:
        raise UnknownStatusPageError(f"no status page {slug}")
    allow_at(MAY, None if page.team is None else page.team.slug, context)
    return page


def _found(page: StatusPage, id_: str) -> tuple[Notice, list[Event]]:
    events = read_stream(stream_of(id_))
    notice = fold(events)
    if notice is None or notice.page != page.slug:
        raise UnknownStatusPageError(f"{page.slug} has no notice {id_}")
    return notice, events


def _recorded(
    page: StatusPage,
    notice: Notice | None,
    id_: str,
    events: list[Event],
    type_: str,
    body: Mapping[str, Any],
    context: Context,
) -> Notice:
    head = events[-1].head if events else Head.NEW
    (event,) = append(stream_of(id_), [NewEvent(type_, body, now_utc())], head, context)
    after = evolve(notice, event)
    project(after, event.version)
    _note(page, after, event, context)
    page.version += 1
    page.save(update_fields=["version"])
    return after


_CHANGES: Final[Mapping[str, StatusChange]] = {
    PUBLISHED: "published",
    EDITED: "edited",
    WITHDRAWN: "withdrawn",
}


def _note(page: StatusPage, notice: Notice, event: Event, context: Context) -> None:
    """The timeline of the incident has what strangers were told of it."""
    if notice.incident is None:
        return
    update = notice.updates[event.body["number"] - 1] if event.type == EDITED else notice.last
    words = STATUSES[notice.kind][update.status]
    command = RecordStatusUpdate(
        page.slug, page.name, notice.id, update.number, _CHANGES[event.type], words, update.text
    )
    record(notice.incident, command, context)
