"""Overrides and swaps made and taken back, each recorded as a change of the configuration; calendars and feeds."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, cast

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Max

from incidents.domain.oncall.overrides import Stretch, check_reversible, ended, swapped, times_of
from incidents.domain.values import CommandRefusedError, InvalidValueError, check_line, rfc3339
from incidents.oncall import queries
from incidents.oncall.models import CalendarFeed, OnCallSchedule, Override
from incidents.teams.models import allow_at
from ingest.commands import record_configuration
from ingest.queries import Context

MOST: Final = 500
"""Overrides of one schedule that are not over."""
MOST_FEEDS: Final = 20
"""Of one person for one schedule."""
_TICK = timedelta(microseconds=1)


class OverrideNotFoundError(Exception):
    """There is no such override, swap or feed."""


@transaction.atomic
def override(
    schedule: str,
    person: object,
    starts_at: datetime | None,
    ends_at: datetime,
    reason: object,
    now: datetime,
    context: Context,
) -> Override:
    """`person` is on call from `starts_at` (None: now) until `ends_at`. Raises InvalidValueError,
    ScheduleNotFoundError."""
    row = _to_override(schedule, context)
    user, why = person_named("person", person), _reason(reason)
    begins, ends = times_of(starts_at, ends_at, now)
    [made] = _make(row, [(user, begins, ends)], why, None, now, context)
    return made


@transaction.atomic
def end_override(schedule: str, id: str, now: datetime, context: Context) -> None:
    """From now on it counts no more. Raises CommandRefusedError, OverrideNotFoundError, ScheduleNotFoundError."""
    row = _to_override(schedule, context)
    one = row.overrides.select_related("person").filter(pk=_uuid(id)).first()
    if one is None:
        raise OverrideNotFoundError(f"There is no override {id[:60]}.")
    if one.swap is not None:
        raise CommandRefusedError("It is a part of a swap; undo the swap.")
    before, end = override_as_json(one), ended((one.starts_at, one.ends_at), now)
    if end is None:
        one.delete()
    else:
        one.ends_at = end
        one.save(update_fields=["ends_at"])
    key = f"{row.slug}/{before['id']}"
    record_configuration("override", key, before, None if end is None else override_as_json(one), context)


@transaction.atomic
def swap(
    schedule: str, first: Stretch, second: Stretch, reason: object, now: datetime, context: Context
) -> list[Override]:
    """Each of two people takes a stretch of the other's. Raises InvalidValueError, ScheduleNotFoundError."""
    row = _to_override(schedule, context)
    users = {one.person: person_named(f"{name}.person", one.person) for name, one in _named(first, second)}
    why = _reason(reason)
    spans = [times_of(one.start, one.end, now, f"{name}.") for name, one in _named(first, second)]
    known = queries.rota(row, min(start for start, _ in spans), max(end for _, end in spans))
    taken = swapped(known, first, second, now)
    parts = [(users[one.person], one.start, one.end) for one in taken]
    return _make(row, parts, why, uuid.uuid4(), now, context)


@transaction.atomic
def take_back_swap(schedule: str, id: str, now: datetime, context: Context) -> None:
    """As if it had not been made. Raises CommandRefusedError once a part of it has begun, OverrideNotFoundError,
    ScheduleNotFoundError."""
    row = _to_override(schedule, context)
    parts = list(row.overrides.select_related("person").filter(swap=_uuid(id), swap__isnull=False))
    if not parts:
        raise OverrideNotFoundError(f"There is no swap {id[:60]}.")
    check_reversible([(one.starts_at, one.ends_at) for one in parts], now)
    before = _swap_as_json(parts)
    for one in parts:
        one.delete()
    record_configuration("swap", f"{row.slug}/{before['id']}", before, None, context)


@transaction.atomic
def make_feed(
    schedule: str, user: AbstractBaseUser, mine: bool, context: Context
) -> tuple[CalendarFeed, str]:
    """A secret address for calendar programs: the feed and its secret, which cannot be had again."""
    row = _for_update(schedule)
    if row.feeds.filter(user=cast(Any, user)).count() >= MOST_FEEDS:
        raise CommandRefusedError(f"You have {MOST_FEEDS} addresses for this schedule; remove one first.")
    secret = secrets.token_urlsafe(32)
    feed = CalendarFeed.objects.create(schedule=row, user=cast(Any, user), mine=mine, digest=digest(secret))
    record_configuration("schedule_feed", f"{row.slug}/{feed.pk}", None, _feed_as_json(feed), context)
    return feed, secret


@transaction.atomic
def remove_feed(schedule: str, id: str, user: AbstractBaseUser | None, context: Context) -> None:
    """One's own; with None anybody's. Raises OverrideNotFoundError, ScheduleNotFoundError."""
    row = _for_update(schedule)
    mine = row.feeds.select_related("user").filter(pk=_uuid(id))
    feed = (mine if user is None else mine.filter(user=cast(Any, user))).first()
    if feed is None:
        raise OverrideNotFoundError(f"There is no feed {id[:60]} of yours.")
    before = _feed_as_json(feed)
    feed.delete()
    record_configuration("schedule_feed", f"{row.slug}/{before['id']}", before, None, context)


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def person_named(field: str, name: object) -> AbstractBaseUser:
    """Somebody who may sign in. Raises InvalidValueError."""
    users = get_user_model()
    text = check_line(field, name, 150)
    found = users.objects.filter(**{users.USERNAME_FIELD: text}, is_active=True).first()
    if found is None:
        raise InvalidValueError(field, f"no active account {text!r}")
    return found


def override_as_json(one: Override) -> dict[str, Any]:
    """An override as answers and events say it."""
    return {
        "id": str(one.pk),
        "person": one.person.get_username(),
        "starts_at": rfc3339(one.starts_at),
        "ends_at": rfc3339(one.ends_at),
        "reason": one.reason,
        "swap": None if one.swap is None else str(one.swap),
        "made_by": one.made_by,
    }


def _for_update(slug: str) -> OnCallSchedule:
    """One change of a schedule's overrides after the other."""
    row = OnCallSchedule.objects.select_for_update().filter(pk=queries.find_schedule(slug).pk).first()
    if row is None:
        raise queries.ScheduleNotFoundError(slug)
    return row


def _to_override(slug: str, context: Context) -> OnCallSchedule:
    """The same, for who may stand in or have others stand in. Raises ForbiddenError."""
    found = queries.find_schedule(slug)
    allow_at("override", found.team.slug if found.team else None, context)
    return _for_update(slug)


def _named(first: Stretch, second: Stretch) -> tuple[tuple[str, Stretch], tuple[str, Stretch]]:
    return ("first", first), ("second", second)


def _reason(reason: object) -> str:
    return check_line("reason", reason, 500)


def _uuid(id: str) -> uuid.UUID:
    try:
        return uuid.UUID(id)
    except ValueError:
        raise OverrideNotFoundError(f"There is no {id[:60]!r}.") from None


def _swap_as_json(parts: Sequence[Override]) -> dict[str, Any]:
    return {"id": str(parts[0].swap), "overrides": [override_as_json(one) for one in parts]}


def _feed_as_json(feed: CalendarFeed) -> dict[str, Any]:
    return {"id": str(feed.pk), "user": feed.user.get_username(), "mine": feed.mine, "secret": "set"}


def _make(
    row: OnCallSchedule,
    parts: Sequence[tuple[AbstractBaseUser, datetime, datetime]],
    why: str,
    swap: uuid.UUID | None,
    now: datetime,
    context: Context,
) -> list[Override]:
    if row.overrides.filter(ends_at__gt=now).count() + len(parts) > MOST:
        raise CommandRefusedError(
            f"{row.name} has {MOST} overrides that are not over; change its layers instead."
        )
    latest = row.overrides.aggregate(at=Max("made_at"))["at"]
    # The one that is made later wins, whatever the clocks say.
    first = now if latest is None else max(now, latest + _TICK)
    made = [
        Override.objects.create(
            schedule=row,
            person=cast(Any, user),
            starts_at=start,
            ends_at=end,
            reason=why,
            swap=swap,
            made_by=context.actor,
            made_at=first + place * _TICK,
        )
        for place, (user, start, end) in enumerate(parts)
    ]
    if swap is None:
        record_configuration("override", f"{row.slug}/{made[0].pk}", None, override_as_json(made[0]), context)
    else:
        record_configuration("swap", f"{row.slug}/{swap}", None, _swap_as_json(made), context)
    return made
