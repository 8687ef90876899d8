"""Chat: workspaces with messages of incidents (for staff), and the page that links a chat account to a person."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST
from rest_framework.exceptions import ValidationError

from frontend.views.pages import context_of, page, show, staff_only, user_name
from incidents import queries
from incidents.api.chat import ChatWorkspaceSerializer, ChatWorkspacesView
from incidents.api.incident.views import ConflictError
from incidents.chat import commands
from incidents.chat.errors import ChatError
from incidents.chat.models import ChatWorkspace
from incidents.chat.queries import lag_of
from incidents.domain.chat import manifest
from incidents.domain.values import SEVERITIES, InvalidValueError
from ingest.queries import StreamVersionError

NEW = "acme"
"""Shown in the manifest and in addresses until a name is typed."""


@page
@require_http_methods(["GET", "HEAD", "POST"])
def chat(request: HttpRequest) -> HttpResponse:
    staff_only(request)
    if request.method != "POST":
        return _listed(request)
    given = _typed(request.POST)
    row = ChatWorkspace.objects.filter(name=given["name"]).first() if "existing" in request.POST else None
    if row is not None:
        given = {
            name: value for name, value in given.items() if value or name not in ("token", "signing_secret")
        }
    serializer = ChatWorkspaceSerializer(row, data=given, partial=row is not None)
    try:
        serializer.is_valid(raise_exception=True)
        ChatWorkspacesView.acting_for(context_of(request)).put(serializer)
    except ValidationError as error:
        return _listed(request, _texts(error.detail), given, row)
    except (IntegrityError, StreamVersionError):
        return _listed(request, {"name": "is already taken"}, given, row)
    except ConflictError as error:
        return _listed(request, {"name": str(error.detail)}, given, row)
    done = "saved" if row is not None else "created: incidents from now on appear there"
    messages.success(request, f"{given['name']} {done}.")
    return HttpResponseRedirect(reverse("chat"))


def _typed(form: QueryDict) -> dict[str, Any]:
    given: dict[str, Any] = {
        name: form.get(name, "").strip() for name in ("name", "token", "signing_secret", "channel", "least")
    }
    given |= {name: form.get(name, "").strip() for name in ("platform", "url") if name in form}
    rooms = {key.removeprefix("room-"): form.get(key, "").strip() for key in form if key.startswith("room-")}
    return {**given, "rooms": {team: channel for team, channel in rooms.items() if channel}}


LABELS = {
    "url": "Server address",
    "token": "Bot token",
    "signing_secret": "Secret",
    "channel": "Default channel",
    "least": "Lowest severity",
    "rooms": "Channel of a team",
}


def _texts(detail: Any) -> dict[str, str]:
    """One line a field; of rooms, that of the first wrong one with its team."""
    shown = {}
    for name, why in dict(detail).items():
        if isinstance(why, dict):
            team, why = next(iter(why.items()))
            shown[name] = f"{team}: {why[0]}"
        else:
            shown[name] = str(why[0])
    return shown


def _listed(
    request: HttpRequest,
    errors: dict[str, str] | None = None,
    typed: dict[str, Any] | None = None,
    changed: ChatWorkspace | None = None,
) -> HttpResponse:
    teams = queries.teams()
    rows = [_shown(row, teams) for row in ChatWorkspace.objects.prefetch_related("accounts__user")]
    typed = typed or {}
    context = {
        "workspaces": rows,
        "teams": [(team, typed.get("rooms", {}).get(team.slug, "")) for team in teams],
        "severities": SEVERITIES,
        "platforms": ChatWorkspace.Platform.choices,
        "command_address": f"{settings.PUBLIC_URL}/chat/mattermost/{NEW}",
        "errors": errors or {},
        "problems": [
            (LABELS.get(name, name.capitalize()), why)
            for name, why in (errors or {}).items()
            if name != "name" or changed is not None  # the form of a new workspace has it at its field
        ],
        "changed": changed,
        "typed": typed,
        "manifest": json.dumps(manifest(settings.PUBLIC_URL, NEW), indent=2),
        "placeholder": NEW,
    }
    return show(
        request, "frontend/settings/chat.html", context, section="settings", status=400 if errors else 200
    )


def _shown(row: ChatWorkspace, teams: list[Any]) -> dict[str, Any]:
    names = {team.slug: team.name for team in teams}
    return {
        "it": row,
        "lag": int(lag_of(row)),
        "rooms": [(names.get(team, team), channel) for team, channel in sorted(row.rooms.items())],
        "teams": [(team, row.rooms.get(team.slug, "")) for team in teams],
        "accounts": list(row.accounts.all()),
        "url": f"{settings.PUBLIC_URL}/chat/{row.platform}/{row.name}",
    }


@page
@require_POST
def act(request: HttpRequest, name: str, verb: str) -> HttpResponse:
    staff_only(request)
    row = ChatWorkspace.objects.filter(name=name).first()
    if row is None or verb not in ("test", "switch", "remove", "unlink"):
        raise Http404("no such workspace")
    context = context_of(request)
    try:
        if verb == "test":
            messages.success(
                request, f"{row.name}: test message posted to {commands.test(row, context.actor)}."
            )
        elif verb == "switch":
            commands.change(row, {"active": not row.active}, context)
            messages.success(request, f"{row.name} {'disabled' if row.active else 'enabled'}.")
        elif verb == "unlink":
            for account in row.accounts.filter(chat_user=request.POST.get("chat_user", "")):
                commands.unlink(account, context)
                messages.success(
                    request, f"{account.user.get_username()} is no longer linked to {account.chat_user}."
                )
        else:
            commands.remove(row, context)
            messages.success(
                request, f"{row.name} removed. Its messages remain in the chat but are no longer updated."
            )
    except ChatError as error:
        messages.error(request, f"Not sent: {error}.")
    except StreamVersionError:
        messages.error(request, "Not saved: changed by someone else in the meantime. Reload and try again.")
    return HttpResponseRedirect(reverse("chat"))


@page
@require_http_methods(["GET", "HEAD", "POST"])
def link(request: HttpRequest, token: str) -> HttpResponse:
    """GET asks, POST links the chat account to who is signed in."""
    try:
        workspace, chat_user, shown = commands.read_link(token)
    except InvalidValueError as error:
        problem = f"{error.field.capitalize()} {error.reason}."
        return show(request, "frontend/settings/chat_link.html", {"problem": problem}, status=410)
    done = request.method == "POST"
    if done:
        commands.link(workspace, chat_user, user_name(request), context_of(request))
    context = {"workspace": workspace, "chat_user": chat_user, "shown": shown, "done": done}
    return show(request, "frontend/settings/chat_link.html", context)
