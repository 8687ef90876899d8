"""The page of one incident: the page model rendered, with the forms that the reader may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from frontend.incident_page import IncidentPage, incident_page
from frontend.templatetags.times import exact
from frontend.views.incident.list_context import among
from frontend.views.pages import page, show, user_name
from incidents import queries
from incidents.commands import Happened, without_team
from incidents.domain.permissions import ANYWHERE, AT_ITS_TEAM
from incidents.domain.time import parse_rfc3339
from incidents.permissions import refusals

MORE = ("merge", "set_title", "link")
"""Verbs whose forms share a panel."""
SNOOZES = (
    ("1", "For an hour"),
    ("4", "For 4 hours"),
    ("24", "For a day"),
    ("72", "For 3 days"),
    ("change", "Until a new alert or finding"),
)
SEVERITIES = ("critical", "error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an action was not carried out, and what was typed, so that nothing has to be typed again."""

    verb: str
    reason: str
    typed: Mapping[str, str]
    meanwhile: Sequence[Happened] = ()
    """What others did since this page was shown: the form below is there again, for the incident as it is now."""


@page
@require_safe
def incident(request: HttpRequest, number: int) -> HttpResponse:
    return render_incident(request, number)


@page
@require_safe
def by_id(_: HttpRequest, id: UUID) -> HttpResponse:
    """The address by id leads to the one by number."""
    return redirect("incident", queries.get(str(id)).incident.number)


def render_incident(
    request: HttpRequest, number: int, problem: Problem | None = None, status: int = 200
) -> HttpResponse:
    """The page, with `problem` beside the form that caused it. Raises IncidentNotFoundError and InvalidValueError."""
    given = request.GET
    as_of = queries.parse_moment(given["as_of"]) if given.get("as_of") else None
    shown = incident_page(number, as_of, alerts=given.get("alerts", "1"), kinds=given.get("show", ""))
    context = {
        **{field.name: getattr(shown, field.name) for field in fields(IncidentPage)},
        "i": shown.incident,
        "agree": shown.agree,
        "among": among(request, number),
        # Fragments are fetched for the same moment.
        "then": f"?as_of={as_of}" if as_of else "",
        "moment_words": _moment_words(given.get("as_of", ""), shown.moments[shown.moment_place]["at"]),
        **({} if as_of else form_choices(shown.incident, shown.suspects, user_name(request), problem)),
    }
    watch = "" if as_of else shown.incident.id
    return show(
        request, "frontend/incident/incident.html", context, section="inbox", watch=watch, status=status
    )


def _moment_words(asked: str, at: str) -> str:
    """The time that an address asks for; of a position the time of the event that it shows last."""
    try:
        return exact(parse_rfc3339(asked.replace(" ", "+")))
    except (ValueError, OverflowError):
        return exact(at)


def form_choices(
    state: queries.Incident, suspects: Sequence[Mapping[str, Any]], name: str, problem: Problem | None
) -> dict[str, Any]:
    """The context of an incident's forms, for the person with this name."""
    refused = refusals(name, ANYWHERE | AT_ITS_TEAM, state.id)
    no_team = without_team(state.team, queries.team_slugs()) if state.state == "resolved" else None
    panels = _panels(state, refused) - ({"reopen"} if no_team else set())
    return {
        "causes": _causes(state, suspects),
        "snoozes": SNOOZES,
        "more": MORE,
        "severities": SEVERITIES,
        "people": _people(),
        "refused": refused,
        "refusal": refused.get("acknowledge") or next(iter(refused.values()), ""),
        "more_refused": set(MORE) <= refused.keys(),
        "problem": problem,
        "problem_alone": problem is not None and problem.verb not in panels,
        "no_team": no_team,
    }


def _causes(state: queries.Incident, suspects: Sequence[Mapping[str, Any]]) -> list[tuple[str, float | None]]:
    """What is offered as confirmed cause, with the probability that an analyzer gave it."""
    causes: dict[str, float | None] = {}
    for suspect in suspects:
        causes.setdefault(suspect["component"], suspect["score"])
        for name in suspect["ambiguous_with"] if suspect["own"] else ():
            causes.setdefault(name, None)
    for name in (state.component, *state.ambiguous_with):
        if name:
            causes.setdefault(name, None)
    return list(causes.items())


def _panels(state: queries.Incident, refused: Mapping[str, str]) -> set[str]:
    """The forms that can show what went wrong beside what was typed; without one it stands alone."""
    if state.merged_into is not None:
        panels = {"comment", "set_severity"}
    elif state.state == "resolved":
        panels = {"comment", "set_severity", "reopen", *MORE}
    else:
        panels = {"comment", "set_severity", "resolve", "assign", "hand_over", "snooze", "escalate", *MORE}
        panels |= {"split_off"} if state.alerts > 1 else set()
        panels |= {"bounce"} if state.handed_over else set()
    if not set(MORE) <= refused.keys():
        return panels - (refused.keys() - set(MORE))
    return panels - refused.keys()


def _people() -> list[str]:
    users = get_user_model().objects.filter(is_active=True)
    return list(users.order_by("username").values_list("username", flat=True)[:500])
