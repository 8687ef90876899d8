"""Keep, rename, change, remove and bring back views. What belongs to a team is recorded as configuration."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify

from incidents.domain.incident.decide import CommandRefusedError
from incidents.domain.permissions import ForbiddenError
from incidents.domain.values import InvalidValueError, check_line
from incidents.people.permissions import actor_name, person
from incidents.saved_views.models import DefaultView, SavedView
from incidents.teams.models import Team
from ingest.commands import record_configuration
from ingest.queries import Context

KIND = "saved_view"
TABS = ("unresolved", "mine", "open", "work", "resolved", "all")
FIELDS = ("tab", "search", "order")
"""Of an address of the inbox what a view keeps: not the page, nor the moment."""
USUAL = {"tab": "unresolved", "order": "severity"}
NAME_LIMIT, QUERY_LIMIT, MOST = 60, 2000, 100


class SavedViewNotFoundError(Exception):
    """There is none of that id that this person may see."""


def canonical(query: str) -> str:
    """The part of an address that a view keeps, in one order, without what is usual. Raises InvalidValueError."""
    try:
        given = dict(parse_qsl(query[: 10 * QUERY_LIMIT].lstrip("?"), max_num_fields=50))
    except ValueError:
        raise InvalidValueError("query", "must be an address of the inbox") from None
    fields = [(name, given[name]) for name in FIELDS if given.get(name, "") not in ("", USUAL.get(name))]
    written = urlencode(fields)
    if len(written) > QUERY_LIMIT or "%00" in written:
        raise InvalidValueError(
            "query", f"must be an address of the inbox of at most {QUERY_LIMIT} characters"
        )
    return written


@transaction.atomic
def keep(name: str, query: str, team: str, context: Context) -> SavedView:
    """A new view. Raises InvalidValueError, ForbiddenError, CommandRefusedError where the name is taken."""
    name = check_line("name", name, NAME_LIMIT)
    maker = _user(context)
    if SavedView.objects.filter(maker=maker, removed_at=None).count() >= MOST:
        raise CommandRefusedError(f"limit of {MOST} saved views reached; remove some first")
    row = SavedView(maker=maker, team=_team(team, context), name=name, query=canonical(query))
    row.slug = None if row.team is None else free_slug(row.team, name)
    _save(row)
    _record(row, None, saved_view_as_json(row), context)
    return row


@transaction.atomic
def change(id: UUID, context: Context, *, name: str | None = None, query: str | None = None) -> SavedView:
    """Another name, or what it shows. Raises InvalidValueError, ForbiddenError, SavedViewNotFoundError,
    CommandRefusedError."""
    row = _found(id, context)
    before = saved_view_as_json(row)
    if name is not None:
        row.name = check_line("name", name, NAME_LIMIT)
    if query is not None:
        row.query = canonical(query)
    _save(row)
    _record(row, before, saved_view_as_json(row), context)
    return row


@transaction.atomic
def remove(id: UUID, context: Context) -> SavedView:
    row = _found(id, context)
    row.removed_at = timezone.now()
    row.save(update_fields=["removed_at"])
    _record(row, saved_view_as_json(row), None, context)
    return row


def remove_shared(team: Team, context: Context) -> None:
    """The views of a team that is removed, in that transaction."""
    for row in team.saved_views.filter(removed_at=None).select_related("team"):
        _record(row, saved_view_as_json(row), None, context)


@transaction.atomic
def bring_back(id: UUID, context: Context) -> SavedView:
    """Raises CommandRefusedError where another has its name by now."""
    row = _found(id, context, removed=True)
    if row.removed_at is not None:
        row.removed_at = None
        _save(row)
        _record(row, None, saved_view_as_json(row), context)
    return row


@transaction.atomic
def open_with(id: UUID | None, context: Context) -> None:
    """Set the view that the inbox opens with for the actor; None: all that is not resolved."""
    user = _user(context)
    if id is None:
        DefaultView.objects.filter(person=user).delete()
        return
    row = SavedView.objects.filter(pk=id, removed_at=None).first()
    if row is None or (row.team is None and row.maker_id != user.pk):
        raise SavedViewNotFoundError
    DefaultView.objects.update_or_create(person=user, defaults={"view": row})


def may_change(row: SavedView, name: str) -> bool:
    """Its maker may, and of a team's view whoever responds for the team."""
    if row.maker is not None and row.maker.get_username() == name:
        return True
    return row.team is not None and responds(name, row.team.slug)


def saved_view_as_json(row: SavedView) -> dict[str, Any]:
    """Record of a view, also shown by the API: its name, and its filters in parts."""
    given = dict(parse_qsl(row.query))
    fields = {name: given.get(name, USUAL.get(name, "")) for name in FIELDS}
    return {"slug": row.slug, "name": row.name, "team": None if row.team is None else row.team.slug, **fields}


def _found(id: UUID, context: Context, *, removed: bool = False) -> SavedView:
    found = SavedView.objects.select_for_update(of=("self",)).select_related("maker", "team").filter(pk=id)
    row = (found if removed else found.filter(removed_at=None)).first()
    name = actor_name(context) or ""
    if row is None or (row.team is None and (row.maker is None or row.maker.get_username() != name)):
        raise SavedViewNotFoundError
    if not may_change(row, name):
        assert row.team is not None
        raise ForbiddenError(f"only responders of {row.team.slug} and the author can change this view")
    return row


def _team(slug: str, context: Context) -> Team | None:
    if not slug:
        return None
    team = Team.objects.filter(slug=slug[:60].replace("\0", "")).first()
    if team is None:
        raise InvalidValueError("team", "must be the slug of an existing team")
    if not responds(actor_name(context) or "", team.slug):
        raise ForbiddenError(f"only responders of {team.slug} can share a view with it")
    return team


def free_slug(team: Team, name: str) -> str:
    """Slug of a team's view: out of both names, and a number where that is taken."""
    wanted = slugify(f"{team.slug}-{name}")[:70] or "view"
    taken = set(
        SavedView.objects.filter(slug__startswith=wanted, removed_at=None).values_list("slug", flat=True)
    )
    numbered = (f"{wanted}-{n}" for n in range(2, len(taken) + 3))
    return wanted if wanted not in taken else next(one for one in numbered if one not in taken)


def responds(name: str, team: str) -> bool:
    """Whether who asks may share views with a team."""
    actor = person(name)
    return actor is None or actor.is_staff or actor.has("responder", team)


def _save(row: SavedView) -> None:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise CommandRefusedError(f"a view named {row.name} already exists") from None


def _record(
    row: SavedView, before: dict[str, Any] | None, after: dict[str, Any] | None, context: Context
) -> None:
    """A person's own views are theirs alone; those of a team are configuration."""
    if row.team is not None:
        record_configuration(KIND, row.slug or str(row.pk), before, after, context)


def _user(context: Context) -> Any:
    return get_user_model().objects.get(username=actor_name(context) or "")
