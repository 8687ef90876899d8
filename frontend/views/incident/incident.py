"""The page of one incident: the page model rendered, with the forms that the reader may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from frontend.incident_page import IncidentPage, incident_page
from frontend.times import exact
from frontend.views.inbox.listing import ORDERS, PAGE, Listing, address, listing_of
from frontend.views.incident.remediation import remediation_context
from frontend.views.pages import page, show, user_name
from incidents import queries
from incidents.commands import Happened, InvalidValueError, without_team
from incidents.data_sources.models import DataSource
from incidents.domain.incident.nodes import blamed_nodes, can_be_mitigated
from incidents.domain.incident.questions import beliefs
from incidents.domain.permissions import ANYWHERE, AT_ITS_TEAM
from incidents.domain.questions import Dialogue, is_settled
from incidents.domain.values import parse_rfc3339
from incidents.people.permissions import refusals
from incidents.status_pages.models import StatusPage

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
    """An action that was refused: the reason, and the typed text, so that nothing has to be typed again."""

    verb: str
    reason: str
    typed: Mapping[str, str]
    meanwhile: Sequence[Happened] = ()
    """Changes by others since this page was shown: the form below is there again, for the incident as it is now."""


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
    shown = incident_page(number, as_of, alerts=given.get("alerts", ""), kinds=given.get("show", ""))
    context = {
        **{field.name: getattr(shown, field.name) for field in fields(IncidentPage)},
        "i": shown.incident,
        "several": shown.several,
        "agree": shown.agree,
        "rivals": shown.rivals,
        "ruled_out": shown.ruled_out,
        "mitigation_applies": not as_of
        and not shown.several
        and shown.incident.state != "resolved"
        and can_be_mitigated(shown.incident),
        "questions_apply": not as_of and _has_questions(shown),
        "questions_version": _questions_version(shown),
        "has_data_sources": bool(shown.alerts.total and not shown.opinions) and DataSource.objects.exists(),
        "has_status_pages": not as_of and StatusPage.objects.exists(),
        "among": among(request, number),
        "folds": frozenset(request.COOKIES.get("folds", "").split(".")),
        # Fragments are fetched for the same moment.
        "then": f"?as_of={as_of}" if as_of else "",
        "moment_words": _moment_words(given.get("as_of", ""), shown.moments[shown.moment_place]["at"]),
        **({} if shown.several else _way_of_a_node(shown.incident, None if as_of else user_name(request))),
        **({} if as_of else form_choices(shown.incident, shown.suspects, user_name(request), problem)),
    }
    watch = "" if as_of else shown.incident.id
    return show(
        request, "frontend/incident/incident.html", context, section="inbox", watch=watch, status=status
    )


def _has_questions(shown: IncidentPage) -> bool:
    """Whether one verdict leaves several suspects, analyzers disagree, or something was asked before."""
    state = shown.incident
    if state.ambiguous_with or state.questions or len(shown.suspects) > 1:
        return True
    if len(state.opinions) < 2:
        return False
    found = beliefs(state)
    return len(found) > 2 and not is_settled(found)  # suspects, and none of them


def _questions_version(shown: IncidentPage) -> str:
    """Another one whenever the suspects, what is asked or what was answered changed."""
    known = shown.incident.questions or Dialogue()
    return f"{len(known.answers)}-{len(known.requested)}-{shown.incident.component}-{shown.evidence_version}"


def _way_of_a_node(state: queries.Incident, name: str | None) -> dict[str, Any]:
    return remediation_context(state, name) if state.remediation or blamed_nodes(state) else {}


def _moment_words(listed: str, at: str) -> str:
    """The time that an address asks for; of a position the time of the event that it shows last."""
    try:
        return exact(parse_rfc3339(listed.replace(" ", "+")))
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
    """Choices of the confirmed cause, with the probability that an analyzer gave it."""
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
        panels |= {"hand_to_cluster"} if blamed_nodes(state) else set()
    panels |= {"answer_remediation"} if state.remediation is not None else set()
    if not set(MORE) <= refused.keys():
        return panels - (refused.keys() - set(MORE))
    return panels - refused.keys()


def _people() -> list[str]:
    users = get_user_model().objects.filter(is_active=True)
    return list(users.order_by("username").values_list("username", flat=True)[:500])


# Place in the list that the reader came from
# ----------------------------------------------------------------------------------------------------------
LIST, PLACE = "list", "place"
"""Parameters of an incident's address: the list that it was opened from, and its mark there."""
_LONGEST = 4000


@dataclass(frozen=True, slots=True)
class ListContext:
    """Neighbours of an incident in the list. `tail` is what its own addresses carry on, `""` without a list."""

    query: str = ""
    tail: str = ""
    words: str = ""
    back: str = ""
    position: queries.ListPosition | None = None
    previous: str = ""
    next: str = ""


def of_list(listing: Listing, given: QueryDict) -> str:
    """The list of an address, as the addresses of its incidents carry it."""
    return address(given, tab=listing.tab.name, cursor=None).removeprefix("?")


def among(request: HttpRequest, number: int) -> ListContext:
    """Of the list that the address of an incident names. A list that makes no sense is none: the incident is shown."""
    listed = request.GET.get(LIST, "")
    if not listed or len(listed) > _LONGEST or "\0" in listed:
        return ListContext()
    given = QueryDict(listed)
    at = request.GET.get(PLACE) or None
    try:
        listing = listing_of(request, given)
        place = None if listing.problems else _list_position(listing, number, at)
    except InvalidValueError:
        return ListContext()
    query = carried(request)
    return ListContext(
        query=query,
        tail=query.replace("?", "&", 1),
        words=_words(listing),
        back=_back(given, number, place),
        position=place,
        previous=_beside(None if place is None else place.previous, listed, given),
        next=_beside(None if place is None else place.next, listed, given),
    )


def carried(request: HttpRequest) -> str:
    """Part of an incident's address about its list, as the query of another one; empty without a list."""
    query = {name: value for name in (LIST, PLACE) if (value := request.GET.get(name))}
    return f"?{urlencode(query)}" if LIST in query and len(query[LIST]) <= _LONGEST else ""


def _list_position(listing: Listing, number: int, at: str | None) -> queries.ListPosition | None:
    try:
        view = queries.get(str(number), listing.as_of)
    except queries.IncidentNotFoundError:
        return None  # not there yet at the moment of the list
    groups = [listing.within_group(n) for n in range(len(listing.tab.groups))]
    return queries.list_position(groups, listing.order, view, at, listing.as_of)


def _beside(neighbour: queries.Neighbour | None, listed: str, given: QueryDict) -> str:
    if neighbour is None:
        return ""
    moment = given.get("as_of")
    query = {LIST: listed, PLACE: neighbour.mark, **({"as_of": moment} if moment else {})}
    return f"{reverse('incident', args=[neighbour.view.incident.number])}?{urlencode(query)}"


def _back(given: QueryDict, number: int, place: queries.ListPosition | None) -> str:
    """To the row: on the first page, or on one that begins with it."""
    cursor = None
    if place is not None and place.previous is not None and (place.place or PAGE + 1) > PAGE:
        cursor = place.previous.mark
    return f"{reverse('inbox')}{address(given, cursor=cursor)}#t{number}"


def _words(listing: Listing) -> str:
    """`Unresolved`, `Resolved: team:storage, Newest first`."""
    usual = listing.order == ORDERS[0][0]
    parts = [listing.text, "" if usual else dict(ORDERS)[listing.order]]
    rest = ", ".join(one for one in parts if one)
    return f"{listing.tab.words}: {rest}" if rest else listing.tab.words
