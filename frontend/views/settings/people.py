"""People: who may sign in, who is in which team, what they may do there. Staff changes all, managers their team."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.db.models import Count, prefetch_related_objects
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from frontend.views.pages import context_of, page, show, staff_only, user_name
from frontend.views.paging import listed
from incidents.api.people import UserSerializer
from incidents.domain.permissions import CONFIGURE, ROLES, ForbiddenError, Person, may
from incidents.domain.values import InvalidValueError
from incidents.notifications.queries import unreachable
from incidents.people import commands as writing
from incidents.people.permissions import person
from incidents.teams.models import Membership, Team
from ingest.queries import StreamVersionError

CARDS = 12
"""Teams up to which the page shows the members of each; more are a list that leads to them."""
FEW = 12
"""Members of a team up to which the page unfolds it."""
MEANS = {
    "viewer": "reads",
    "responder": "works on the team's incidents; comments on and hands over any incident",
    "manager": "also configures the team: routes, schedules, policies, members",
    "admin": "as manager; also appoints managers",
}


@page
@require_http_methods(["GET", "HEAD", "POST"])
def people(request: HttpRequest) -> HttpResponse:
    """The list, for all; the form for staff."""
    if request.method != "POST":
        return _listed(request)
    staff_only(request)
    given: dict[str, Any] = {
        "username": request.POST.get("username", "").strip(),
        "email": request.POST.get("email", "").strip(),
        "password": request.POST.get("password") or None,
        "is_staff": request.POST.get("is_staff") == "on",
    }
    serializer = UserSerializer(data=given)
    if not serializer.is_valid():
        errors = {name: " ".join(str(one) for one in why) for name, why in serializer.errors.items()}
        return _listed(request, errors, given)
    try:
        user = writing.create_user(serializer.validated_data, context_of(request))
    except InvalidValueError as error:
        return _listed(request, {error.field: error.reason}, given)
    except (IntegrityError, StreamVersionError):
        return _listed(request, {"username": "is already taken"}, given)
    messages.success(request, f"{user.username} can sign in.")
    return HttpResponseRedirect(reverse("people"))


def _listed(
    request: HttpRequest, errors: dict[str, str] | None = None, typed: dict[str, Any] | None = None
) -> HttpResponse:
    chosen = _team(request.GET.get("team", ""))
    viewer = person(user_name(request))
    many = chosen is not None or Team.objects.count() > CARDS
    cards = [] if many else list(Team.objects.prefetch_related("memberships__user"))
    context = {
        "teams": [_card(viewer, team, list(team.memberships.all())) for team in cards],
        "among": Team.objects.annotate(people=Count("memberships")).order_by("name")
        if many and chosen is None
        else (),
        "team": chosen,
        "names": User.objects.filter(is_active=True).order_by("username").values_list("username", flat=True),
        "few": FEW,
        "in_force": Membership.objects.exists(),
        "roles": ROLES,
        "means": MEANS,
        "errors": errors or {},
        "typed": typed or {},
    }
    context |= _everybody(request) if chosen is None else _members(request, chosen)
    return show(
        request, "frontend/settings/people.html", context, section="settings", status=400 if errors else 200
    )


def _everybody(request: HttpRequest) -> dict[str, Any]:
    found = listed(
        request,
        list(User.objects.order_by("username")),
        _words,
        lambda user: (user.username,),
        reverse("people"),
    )
    prefetch_related_objects(found.rows, "memberships__team")
    lost = unreachable(user.username for user in found.rows)
    return {"users": found.rows, "list": found, "unreachable": lost}


def _members(request: HttpRequest, team: Team) -> dict[str, Any]:
    """Members of that team alone, however many there are."""
    rows = list(team.memberships.select_related("user").order_by("user__username"))
    found = listed(
        request,
        rows,
        lambda row: f"{row.user.username} {row.user.email} {row.role}",
        lambda row: (row.user.username,),
        reverse("people"),
        ("team",),
    )
    return {"teams": [_card(person(user_name(request)), team, found.rows)], "among": (), "list": found}


def _card(viewer: Person | None, team: Team, members: Sequence[Membership]) -> dict[str, Any]:
    mine = viewer is not None and may(viewer, CONFIGURE, (team.slug,))
    return {"it": team, "members": sorted(members, key=lambda one: one.user.username), "mine": mine}


def _team(slug: str) -> Team | None:
    if not slug:
        return None
    team = Team.objects.filter(slug=slug[:60]).first() if "\0" not in slug else None
    if team is None:
        raise Http404("no such team")
    return team


def _words(user: User) -> str:
    staff, off = "staff" if user.is_staff else "", "" if user.is_active else "off"
    return f"{user.username} {user.email} {staff} {off}"


@page
@require_POST
def change_person(request: HttpRequest, username: str, verb: str) -> HttpResponse:
    """Switch somebody off or on, make them staff or not, set a password."""
    staff_only(request)
    user = User.objects.filter(username=username).first()
    verbs: dict[str, dict[str, Any]] = {
        "off": {"is_active": False},
        "on": {"is_active": True},
        "staff": {"is_staff": True},
        "unstaff": {"is_staff": False},
        "password": {"password": request.POST.get("password", "")},
    }
    fields = verbs.get(verb)
    if user is None or fields is None:
        raise Http404("no such user")
    try:
        writing.change_user(user, fields, context_of(request))
        messages.success(request, f"Done: {username}.")
    except (writing.LastStaffError, InvalidValueError) as error:
        messages.error(request, f"Not done: {error}.")
    except StreamVersionError:
        messages.error(request, "Not saved: changed by someone else in the meantime. Reload and try again.")
    return HttpResponseRedirect(f"{reverse('people')}?{urlencode({'show': username})}#users-title")


@page
@require_POST
def change_member(request: HttpRequest, slug: str) -> HttpResponse:
    """Put somebody into a team with a role, or take them out of it (role `none`)."""
    team = Team.objects.filter(slug=slug).first()
    user = User.objects.filter(username=request.POST.get("user", "").strip()).first()
    if team is None:
        raise Http404("no such team")
    role = request.POST.get("role", "")
    try:
        if user is None:
            raise InvalidValueError("user", "is not a user")
        context = context_of(request)
        if role == "none":
            writing.remove_member(team, user, context)
            messages.success(request, f"{user.username} is no longer in {team.name}.")
        else:
            writing.set_member(team, user, role, context)
            messages.success(request, f"{user.username} is {role} of {team.name}.")
    except ForbiddenError as error:
        messages.error(request, f"Not done: {error.reason}.")
    except InvalidValueError as error:
        messages.error(request, f"Not done: {error.field} {error.reason}.")
    except StreamVersionError:
        messages.error(request, "Not saved: changed by someone else in the meantime. Reload and try again.")
    alone = f"?{urlencode({'team': slug})}" if Team.objects.count() > CARDS else ""
    return HttpResponseRedirect(f"{reverse('people')}{alone}#team-{team.slug}")
