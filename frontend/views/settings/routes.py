"""Routes: the tree of rules, what becomes of one alert, and what a change would have changed.

Staff change them, managers those beneath a rule that gives incidents to their team.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST
from rest_framework.exceptions import ValidationError

from frontend.rights import Rights, configurers_only, own_teams, rights
from frontend.views.pages import context_of, page, show
from frontend.views.paging import listed
from frontend.views.restore import removed
from frontend.views.settings.route_form import body_of, typed_from, typed_in
from frontend.views.settings.route_tester import PASTE, alert_formats, senders, tested
from incidents.api.incident.views import ConflictError
from incidents.api.routing.serializers import RouteSerializer
from incidents.api.routing.views import RoutesView
from incidents.domain.permissions import ForbiddenError
from incidents.domain.routing.explain import Tried
from incidents.domain.routing.rules import EACH_ALONE, Rule
from incidents.domain.routing.schema import Written
from incidents.domain.values import SEVERITIES, InvalidValueError
from incidents.routing import replay
from incidents.teams.models import Route, routing_table
from ingest.queries import StreamVersionError

FORBIDDEN = "Only staff, and managers below a rule of their team, can change rules."
DAYS = 7
LATEST = 5
"""Alerts that the page offers to try."""


@dataclass
class _Page:
    """Contents of the page besides the tree."""

    form: str = ""
    """`new` or `edit`: which form is open."""
    name: str = ""
    """Of the rule that is edited."""
    typed: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    replayed: replay.Replayed | None = None
    without: str = ""
    """The rule that was left out in the replay."""


@page
@require_http_methods(["GET", "HEAD", "POST"])
def route_tree(request: HttpRequest) -> HttpResponse:
    if request.POST.get("do") == PASTE:
        return _shown(request, _Page())
    if request.method == "POST":
        configurers_only(request, FORBIDDEN)
        return _posted(request)
    if edited := request.GET.get("edit"):
        row = _found(edited)
        return _shown(request, _Page("edit", row.name, typed_from(row)))
    if "under" in request.GET:
        return _shown(request, _Page("new", typed={"parent": request.GET["under"]}))
    return _shown(request, _Page())


def _posted(request: HttpRequest) -> HttpResponse:
    """A rule that was typed: kept, or only tried on what is recorded."""
    name, typed = request.POST.get("edited", ""), typed_in(request.POST)
    problems_page = _Page("edit" if name else "new", name, typed)
    row = _found(name) if name else None
    body, problems_page.errors = body_of(typed)
    serializer = RouteSerializer(row, data=body, partial=row is not None)
    if not serializer.is_valid():
        problems_page.errors |= {field: _text(why) for field, why in serializer.errors.items()}
    if problems_page.errors:
        return _shown(request, problems_page)
    if request.POST.get("do") == "try":
        return _tried(request, problems_page, name or None, _written(row, serializer.validated_data))
    try:
        RoutesView.acting_for(context_of(request)).put(serializer)
    except ForbiddenError as refused:
        problems_page.errors = {"team": refused.reason}
        return _shown(request, problems_page)
    except ValidationError as error:
        problems_page.errors = {"parent": _text(error.detail)}
        return _shown(request, problems_page)
    except (ConflictError, IntegrityError, StreamVersionError):
        problems_page.errors = {
            "name": "the rules were changed by someone else in the meantime; reload and try again"
        }
        return _shown(request, problems_page)
    messages.success(request, f"{serializer.data['name']} saved. Open incidents are not moved.")
    return HttpResponseRedirect(reverse("routes"))


def _written(row: Route | None, given: dict[str, Any]) -> Written:
    """The rule as it would be, kept nowhere."""
    names = [one.attname for one in Route._meta.concrete_fields if one.attname != "id"]
    last = {"order": 2**31 - 1}
    as_it_is = last if row is None else {name: getattr(row, name) for name in names}
    proposed = Route(**as_it_is)
    for name, value in given.items():
        setattr(proposed, name, value)
    return proposed.written


def _tried(request: HttpRequest, shown: _Page, name: str | None, by: Written | None) -> HttpResponse:
    now = replay.now()
    try:
        after = replay.with_one_changed(name, by, routing_table())
        shown.replayed = replay.replay_recorded(after, now - timedelta(days=DAYS), now)
    except InvalidValueError as error:
        shown.errors[error.field] = error.reason
    return _shown(request, shown)


def _text(why: Any) -> str:
    """The texts of an error, however it is nested."""
    if isinstance(why, dict):
        return " ".join(map(_text, why.values()))
    return " ".join(map(_text, why)) if isinstance(why, list) else str(why)


def _shown(request: HttpRequest, shown: _Page) -> HttpResponse:
    table = routing_table()
    tried = tested(request, table)
    explained = tried.explained
    allowed = rights(request)
    levels = _levels(
        table.rules, {} if explained is None else {one.rule: one for one in explained.rules}, allowed
    )
    found = listed(request, levels, _words, _names)
    names = sorted(name for name in _extensible(levels) if name != shown.name)
    context = {
        "state": shown,
        # The way of an incident is read along all rules that were tried.
        "rules": found.rows if explained is None else levels,
        "list": None if explained else found,
        "default": table.default,
        "passed_over": sorted(table.passed_over.items()),
        "services": sorted(table.services.values(), key=lambda one: one.slug),
        "teams": own_teams(allowed),
        "rights": allowed,
        "names": names,
        "may_add": allowed.staff or bool(names),
        "severities": SEVERITIES,
        "explained": explained,
        "fields": tried.fields,
        "problem": tried.problem,
        "pasted": tried.pasted,
        "shared": tried.address,
        "endpoints": alert_formats(),
        "senders": senders(),
        "latest": replay.latest_alerts(LATEST),
        "days": DAYS,
    }
    status = 400 if shown.errors or tried.problem else 200
    return show(request, "frontend/settings/routes.html", context, section="settings", status=status)


def _levels(
    rules: Any, tried: dict[str, Tried], rights: Rights, above: str | None = None
) -> list[dict[str, Any]]:
    """Rules of one level as the page shows them; `above`: the team that has the incidents without them."""
    levels = []
    for place, rule in enumerate(rules):
        team = above if rule.team is None else rule.team.slug
        levels.append(
            {
                "rule": rule,
                "asks": rule.when.matched(),
                "gives": _gives(rule),
                "tried": tried.get(rule.name),
                "first": place == 0,
                "last": place == len(rules) - 1,
                # As `incidents.people.permissions.allow_route` has it.
                "editable": rights.staff or (rights.over(above) and rule.team is not None and team == above),
                "extensible": rights.over(team),
                "children": _levels(rule.children, tried, rights, team),
            }
        )
    return levels


def _extensible(levels: list[dict[str, Any]]) -> Iterator[str]:
    """Names of the rules that others may be put beneath."""
    for level in levels:
        if level["extensible"]:
            yield level["rule"].name
        yield from _extensible(level["children"])


def _words(level: dict[str, Any]) -> str:
    """Words of a rule and those beneath it: a branch is found as a whole."""
    parts = (level["rule"].name, level["asks"], *level["gives"], *map(_words, level["children"]))
    return " ".join(map(str, parts))


def _names(level: dict[str, Any]) -> set[str]:
    return {level["rule"].name}.union(*map(_names, level["children"]))


_BY: dict[tuple[str, ...], str] = {(): "all in one incident", EACH_ALONE: "one incident per alert"}


def _gives(rule: Rule) -> list[str]:
    """Effects of a rule itself, in words."""
    parts = [f"to {rule.team.name}"] if rule.team else []
    for name, value in (("service", rule.service), ("severity", rule.severity), ("policy", rule.policy)):
        parts += [f"{name} {value}"] if value else []
    if rule.grouping is not None:
        by, window = rule.grouping.by, rule.grouping.window
        words = "grouped by alert rule" if by is None else _BY.get(by) or f"grouped by {', '.join(by)}"
        parts.append(words if window is None else f"{words} for {int(window.total_seconds() // 60)} min")
    if rule.follow_suggestion is not None:
        parts.append("auto-assign" if rule.follow_suggestion else "no auto-assign")
    return parts


@page
@require_POST
def route_act(request: HttpRequest, name: str, verb: str) -> HttpResponse:
    configurers_only(request, FORBIDDEN)
    row = _found(name)
    if verb == "try-without":
        return _tried(request, _Page(without=name), name, None)
    catalog = RoutesView.acting_for(context_of(request))
    try:
        if verb == "remove":
            catalog.perform_destroy(row)
            removed(request, "route", name, f"{name} removed. Open incidents are not moved.")
        elif verb in ("up", "down"):
            catalog.move(row, down=verb == "down")
        else:
            raise Http404("no such verb")
    except ConflictError as error:
        messages.error(request, str(error.detail))
    except StreamVersionError:
        messages.error(
            request,
            "Not saved: the rules were changed by someone else in the meantime. Reload and try again.",
        )
    return HttpResponseRedirect(f"{reverse('routes')}?{urlencode({'show': name})}#rule-{name}")


def _found(name: str) -> Route:
    row = Route.objects.select_related("team", "service", "parent").filter(name=name[:100]).first()
    if row is None:
        raise Http404("no such rule")
    return row
