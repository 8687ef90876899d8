"""The palette: typed text becomes commands, incidents, components and pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.fuzzy import best, rank
from frontend.rights import rights
from frontend.settings_map import GROUPS
from frontend.templatetags.dossier import SECTIONS, component_url
from frontend.views.pages import page, user_name
from incidents import queries
from incidents.oncall.models import OnCallSchedule
from incidents.oncall.queries import on_call
from incidents.saved_views.queries import views_of
from ingest.queries import regions, topology_snapshot

LONGEST = 200
MOST = 7
"""Of each kind."""
SHORTEST = 2
"""Letters from which on components are searched."""
_GO = re.compile(r"^(?:go\s*to|goto|open|show)\s+(?=\S)", re.IGNORECASE)
_NUMBERED = re.compile(r"^(?P<verb>[A-Za-z][A-Za-z -]*?)\s*#?(?P<number>[0-9]{1,15})$")


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere to go to: `mark` is shown before the words, `beside` after them.

    `post` is an address that is posted to instead, `do` a command of the page itself, `fill` what the field goes on
    with.
    """

    address: str
    words: str
    mark: str = ""
    beside: str = ""
    post: str = ""
    do: str = ""
    fill: str = ""


@dataclass(frozen=True, slots=True)
class Verb:
    """Action on one incident: at once (`post`), or by its `panel` on the page of the incident."""

    words: str
    also: tuple[str, ...] = ()
    post: str = ""
    panel: str = ""


VERBS = (
    Verb("Acknowledge", ("ack",), post="acknowledge"),
    Verb("Unacknowledge", ("unack",), post="unacknowledge"),
    Verb("Assign", panel="assign"),
    Verb("Hand over", ("handover", "reassign"), panel="hand_over"),
    Verb("Silence", panel="silence"),
    Verb("Snooze", panel="snooze"),
    Verb("Escalate", ("page",), panel="escalate"),
    Verb("Resolve", ("close",), panel="resolve"),
    Verb("Merge", panel="more"),
    Verb("Set severity of", ("severity", "priority"), panel="set_severity"),
    Verb("Compare times of", ("compare",), panel="compare"),
    Verb("Open", ("show", "go to", "incident")),
)
DOES = (
    Place("", "Dark theme", beside="Theme", do="theme:dark"),
    Place("", "Light theme", beside="Theme", do="theme:light"),
    Place("", "System theme", beside="Theme", do="theme:auto"),
    Place("", "Compact lists", beside="Lists", do="density:compact"),
    Place("", "Comfortable lists", beside="Lists", do="density:comfortable"),
    Place("", "Keyboard shortcuts", beside="?", do="help"),
    Place("", "Copy link to this page", do="copy"),
    Place("", "Export incidents as CSV", beside="this list", do="export"),
)


@page
@require_safe
def palette(request: HttpRequest) -> HttpResponse:
    """Groups of places, best first within each; none for a text that nothing fits."""
    text = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST]
    going = _GO.sub("", text)
    groups = [
        ("Commands", _commands(text, request)),
        ("On call now", _on_call(text)),
        ("Incidents", _incidents(going)),
        ("Pages", _pages(going, request)),
        ("Components", _components(going)),
    ]
    if going != text:
        groups.sort(key=lambda group: group[0] != "Pages")
    rest = Place(
        f"{reverse('inbox')}?{urlencode({'tab': 'all', 'search': text})}", f"Search all incidents for {text}"
    )
    context = {
        "groups": [(name, places) for name, places in groups if places],
        "rest": rest if text else None,
    }
    return render(request, "frontend/inbox/palette_results.html", context)


@page
@require_safe
def find_incidents(request: HttpRequest) -> HttpResponse:
    """Unresolved incidents by number, or by words of title and component, for a field that takes one. `not` is the
    number of one that is left out."""
    text = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST]
    without = request.GET.get("not", "")
    found = [
        one
        for one in _found(text)
        if one.state != "resolved" and one.merged_into is None and str(one.number) != without
    ]
    return render(request, "frontend/inbox/found.html", {"incidents": found})


# Commands
# ----------------------------------------------------------------------------------------------------------
def _commands(text: str, request: HttpRequest) -> list[Place]:
    if not text:
        return []
    if numbered := _NUMBERED.match(text):
        return _on_incident(numbered["verb"], int(numbered["number"]))
    verbs = [Place("", f"{one.words} #…", beside="type a number", fill=f"{one.words} #") for one in VERBS]
    names = {f"{one.words} #…": " ".join((one.words, *one.also)) for one in VERBS} | {
        "My incidents": "Mine my incidents"
    }
    places = [
        Place(reverse("on_call"), "Who is on call", beside="g o"),
        Place(f"{reverse('silences')}#new", "New silence"),
        Place(f"{reverse('maintenance')}#new", "New maintenance window"),
        Place(f"{reverse('inbox')}?tab=mine", "My incidents"),
        *(Place(f"{reverse('inbox')}?group={one}", f"Group incidents by {one}") for one in queries.GROUPINGS),
        Place(reverse("compare_grid"), "Compare two times of the grid"),
        *(
            [Place(reverse("compare_configuration"), "Compare two times of the configuration")]
            if rights(request).staff
            else []
        ),
        *DOES,
        *verbs,
    ]
    return best(text, places, lambda one: names.get(one.words, one.words))[:MOST]


def _on_incident(typed: str, number: int) -> list[Place]:
    """The verbs that what was typed may mean, on the incident of that number; none where there is no such incident."""
    found = queries.list_incidents(queries.parse_filters({"number": [str(number)]})).items
    if not found:
        return []
    incident, page = found[0].incident, reverse("incident", args=[number])
    places = []
    for verb in best(typed, VERBS, lambda one: " ".join((one.words, *one.also)))[:3]:
        address = page if not verb.panel else f"{page}#{verb.panel}"
        if verb.panel == "silence":
            address = f"{reverse('silences')}?incident={number}#new"
        if verb.panel == "compare":
            address = reverse("compare_incident", args=[number])
        post = reverse("act", args=[number, verb.post]) if verb.post else ""
        places.append(Place(address, f"{verb.words} #{number} {incident.title}", "", incident.state, post))
    return places


def _on_call(text: str) -> list[Place]:
    """People on call in each schedule, where the text asks for it."""
    if len(text) < SHORTEST or not any(
        (place := rank(text, words)) is not None and place <= 1.0
        for words in ("who is on call", "on call now", "on-call")
    ):
        return []
    now = timezone.now()
    return [
        Place(
            reverse("on_call_schedule", args=[row.slug]),
            f"{row.name}: {', '.join(on_call(row.slug, now)) or 'no one'}",
        )
        for row in OnCallSchedule.objects.order_by("name")[:MOST]
    ]


# Places
# ----------------------------------------------------------------------------------------------------------
def _found(text: str) -> list[queries.Incident]:
    """By number, or by what title and component hold."""
    number = text.removeprefix("#")
    found: list[queries.View] = []
    if number.isascii() and number.isdecimal() and len(number) < 16:
        found += queries.list_incidents(queries.parse_filters({"number": [number]})).items
    if text and not text.startswith("#"):
        found += queries.with_title(text, MOST)
    unique = {view.incident.number: view.incident for view in found}
    return list(unique.values())[:MOST]


def _incidents(text: str) -> list[Place]:
    return [
        Place(reverse("incident", args=[one.number]), one.title, f"#{one.number}", one.state)
        for one in _found(text)
    ]


def _pages(text: str, request: HttpRequest) -> list[Place]:
    """Of the console, and the person's own views of the inbox."""
    staff = rights(request).staff
    places = [Place(reverse(name), words) for name, words in SECTIONS]
    places += [
        Place(reverse(one.name), one.title, beside="Settings")
        for group in GROUPS
        for one in group.sections
        if staff or not one.staff
    ]
    places += [
        Place(f"{reverse('inbox')}?{one.query}", one.name, beside="Saved view")
        for one in views_of(user_name(request))
    ]
    return best(text, places, lambda one: one.words)[: MOST if text else len(SECTIONS)]


def _components(text: str) -> list[Place]:
    if len(text) < SHORTEST:
        return []
    names: Sequence[str] = ()
    now = datetime.now(UTC)
    for region in regions():
        names = [*names, *topology_snapshot(region, now).found(text)[:MOST]]
    unique = list(dict.fromkeys(names))[:MOST]
    return [Place(address, name) for name in unique if (address := component_url(name))]
