"""The first steps: a team, a sender, a look at an analyzer, and somebody who is called. Each ticks by what is there."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from analyzers.queries import AnalysisError, runs
from frontend import times
from frontend.evidence import Piece
from frontend.onboarding import NAMES, called_alone, slug_of, steps
from frontend.senders import BY_SLUG, SENDERS, Sender
from frontend.views.pages import context_of, page, show, staff_only
from frontend.views.settings.integrations import make_key
from incidents.api.escalation import PoliciesView, PolicySerializer
from incidents.api.incident.serializers import TeamSerializer
from incidents.api.incident.views import ConflictError
from incidents.api.oncall.schedules import SchedulesView
from incidents.api.oncall.serializers import OnCallScheduleSerializer
from incidents.api.teams.members import TeamsView
from incidents.domain.values import InvalidValueError
from incidents.escalation.queries import is_called
from incidents.notifications.queries import unreachable
from incidents.notifications.recipients import reachable
from incidents.oncall.models import OnCallSchedule
from incidents.people import commands as people
from incidents.teams.models import Membership, Team
from ingest.api import keys
from ingest.api.models import IntegrationKey
from ingest.queries import Context, StreamVersionError, latest_deliveries

SESSION: Final = "welcome"
"""Key of the session: skipped steps, and whether a sample was looked at."""
OFTEN: Final = ("prometheus", "alertmanager", "grafana", "pagerduty", "generic", "otlp")
"""Senders that most people have; the others follow them."""
SENDING: Final = {"alerts", "telemetry"}
PIECES = 3
"""Pieces of evidence of a sample that the page shows."""


@page
@require_safe
def welcome(request: HttpRequest) -> HttpResponse:
    return _shown(request)


def _shown(
    request: HttpRequest, step: str = "", errors: dict[str, str] | None = None, **more: Any
) -> HttpResponse:
    user = _user(request)
    known = request.session.get(SESSION, {})
    step = step or request.GET.get("step", "")
    team = _team_of(user)
    done = {name for name, there in _done(user, team, known).items() if there}
    listed = steps(done, known.get("skipped", ()), step)
    context = {
        "steps": listed,
        "left": sum(not one.done for one in listed),
        "team": team,
        "teams": Team.objects.all(),
        "first": not Membership.objects.exists(),
        "senders": sorted(SENDERS, key=lambda one: (one.slug not in OFTEN, one.title)),
        "connected": _sending(),
        "methods": reachable(user).person.methods,
        "unreachable": unreachable([user.username]).get(user.username),
        "called": is_called(user.username, None if team is None else team.slug),
        "errors": errors or {},
        "typed": request.POST if errors else {},
        **more,
    }
    return show(
        request,
        "frontend/onboarding/welcome.html",
        context,
        section="settings",
        status=400 if errors else 200,
    )


def _done(user: User, team: Team | None, known: dict[str, Any]) -> dict[str, bool]:
    reached = not unreachable([user.username])
    return {
        "team": team is not None,
        "sender": any(row.last_used_at for row in _sending()),
        "sample": bool(known.get("sample")) or runs().filter(state="done").exists(),
        "reach": reached,
        "call": reached and is_called(user.username, None if team is None else team.slug),
    }


def _team_of(user: User) -> Team | None:
    row = Membership.objects.filter(user=user).select_related("team").order_by("pk").first()
    return None if row is None else row.team


def _sending() -> list[IntegrationKey]:
    """Integrations in force that are for what sends."""
    rows = IntegrationKey.objects.filter(revoked_at=None)
    return [row for row in rows if SENDING & set(row.scopes)]


# Steps
# ----------------------------------------------------------------------------------------------------------
@page
@require_POST
def make_team(request: HttpRequest) -> HttpResponse:
    """A team, made or one that is there, with the one who asks as its admin."""
    staff_only(request, "Only staff can create teams.")
    slug, name = request.POST.get("team", "").replace("\0", ""), request.POST.get("name", "").strip()
    try:
        row = Team.objects.filter(slug=slug).first() if slug else _made_team(request, name)
        if row is None:
            raise InvalidValueError("name", "choose a team or enter a name for a new one")
        people.set_member(row, _user(request), "admin", context_of(request))
    except InvalidValueError as error:
        return _shown(request, "team", {"name": error.reason})
    except (IntegrityError, ConflictError, StreamVersionError):
        return _shown(
            request, "team", {"name": "changed by someone else in the meantime; reload and try again"}
        )
    messages.success(request, f"You are admin of {row.name}. Add other people under Settings, People.")
    return HttpResponseRedirect(reverse("welcome"))


def _made_team(request: HttpRequest, name: str) -> Team:
    taken = set(Team.objects.values_list("slug", flat=True))
    serializer = TeamSerializer(data={"name": name, "slug": slug_of(name, taken)})
    if not serializer.is_valid():
        raise InvalidValueError("name", str(next(iter(serializer.errors.values()))[0]).rstrip("."))
    TeamsView.acting_for(context_of(request)).put(serializer)
    assert serializer.instance is not None
    return serializer.instance


@page
@require_POST
def connect(request: HttpRequest) -> HttpResponse:
    """A key for a sender, in the answer to this request and nowhere else, with what to paste."""
    staff_only(request, "Only staff can create keys.")
    sender = BY_SLUG.get(request.POST.get("sender", ""))
    if sender is None:
        return _shown(request, "sender", {"sender": "choose a source"})
    taken = set(IntegrationKey.objects.values_list("name", flat=True))
    name = slug_of(sender.slug, taken)
    try:
        secret = make_key(sender, name, None, context_of(request))
    except keys.KeyNameTakenError:
        return _shown(request, "sender", {"sender": "changed by someone else in the meantime; try again"})
    row = IntegrationKey.objects.get(name=name)
    return _shown(request, "sender", made=_made(row, secret, sender), **_arrival(row))


def _made(row: IntegrationKey, secret: str, sender: Sender) -> dict[str, Any]:
    address = settings.PUBLIC_URL
    return {"row": row, "secret": secret, "sender": sender, "paste": sender.configured(address, secret)}


@page
@require_safe
def arrived(request: HttpRequest, pk: int) -> HttpResponse:
    """The piece of the page that waits for the first thing that a sender sends."""
    row = IntegrationKey.objects.filter(pk=pk).first()
    if row is None:
        raise Http404("no such integration")
    return show(request, "frontend/onboarding/arrived.html", _arrival(row))


def _arrival(row: IntegrationKey) -> dict[str, Any]:
    found = latest_deliveries(row.name, row.created_at, 1) if row.last_used_at else []
    return {"row": row, "now": timezone.now(), "delivery": found[0] if found else None}


@page
@require_http_methods(["POST"])
def sample(request: HttpRequest) -> HttpResponse:
    """Deepview on a failure that is made up; nothing is stored and no incident opens."""
    text = request.POST.get("seed", "0")
    seed = int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0
    # Brings numpy, which pages need for nothing else.
    from analyzers.examples import judge_sample

    try:
        judged = judge_sample(seed)
    except AnalysisError as error:
        return _shown(request, "sample", {"sample": f"the analyzer failed: {error}"})
    request.session[SESSION] = {**request.session.get(SESSION, {}), "sample": True}
    evidence = [Piece.of(item) for item in judged.verdict["evidence"][:PIECES]]
    return _shown(
        request,
        "sample",
        sample=judged,
        # The times of simulated failures mean nothing to a reader.
        suspects=[
            {**one, "own": True, "first_failure": None, "last_failure": None}
            for one in judged.verdict["suspects"]
        ],
        evidence=evidence,
        seed=(seed + 1) % 1_000_000,
    )


@page
@require_POST
def have_called(request: HttpRequest) -> HttpResponse:
    """A schedule in which they take turns alone, and the policy that calls it for incidents of their team."""
    user, context = _user(request), context_of(request)
    team = _team_of(user)
    if team is None:
        return _shown(request, "call", {"call": "join a team first: every incident belongs to a team"})
    try:
        _call(team, user.username, context)
    except InvalidValueError as error:
        return _shown(request, "call", {"call": error.reason})
    except (IntegrityError, ConflictError, StreamVersionError):
        return _shown(
            request, "call", {"call": "changed by someone else in the meantime; reload and try again"}
        )
    messages.success(request, f"Incidents of {team.name} now notify you, and the whole team after 5 min.")
    return HttpResponseRedirect(f"{reverse('welcome')}?step=call")


@transaction.atomic
def _call(team: Team, username: str, context: Context) -> None:
    """Both or neither. A schedule of the team's name stays as it is. Raises InvalidValueError, saying what is in the
    way."""
    day, zone = times.local(timezone.now()).date(), times.here().key
    rota, policy = called_alone(team.slug, team.name, username, day, zone)
    if not OnCallSchedule.objects.filter(slug=team.slug).exists():
        shape = OnCallScheduleSerializer(data=rota)
        shape.is_valid(raise_exception=True)
        SchedulesView.acting_for(context).put(shape)
    serializer = PolicySerializer(data=policy)
    if not serializer.is_valid():
        raise InvalidValueError("call", _why(serializer.errors))
    PoliciesView.acting_for(context).put(serializer)


def _why(value: Any) -> str:
    while isinstance(value, dict | list) and value:
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return str(value).rstrip(".")


@page
@require_POST
def skip(request: HttpRequest) -> HttpResponse:
    """Leave a step for later, or all that is left."""
    name = request.POST.get("step", "")
    known = request.session.get(SESSION, {})
    left = set(known.get("skipped", ())) | (set(NAMES) if name == "all" else {name} & set(NAMES))
    request.session[SESSION] = {**known, "skipped": sorted(left)}
    return HttpResponseRedirect(reverse("inbox" if name == "all" else "welcome"))


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
