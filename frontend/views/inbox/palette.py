"""The palette: whatever is typed becomes incidents, components and pages to go to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from frontend.permissions import rights
from frontend.settings_map import GROUPS
from frontend.templatetags.dossier import SECTIONS, component_url
from frontend.views.pages import page, user_name
from incidents import queries
from incidents.saved_views.queries import views_of
from ingest.queries import regions, topology_snapshot

LONGEST = 200
MOST = 7
"""Of each kind."""
SHORTEST = 2
"""Letters from which on components are looked for."""


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere to go to: `mark` is shown before the words, `beside` after them."""

    address: str
    words: str
    mark: str = ""
    beside: str = ""


@page
@require_safe
def palette(request: HttpRequest) -> HttpResponse:
    """Groups of places, best first within each; none for a text that nothing fits."""
    text = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST]
    groups = [
        ("Incidents", _incidents(text)),
        ("Pages", _pages(text, request)),
        ("Components", _components(text)),
    ]
    rest = Place(
        f"{reverse('inbox')}?{urlencode({'tab': 'all', 'search': text})}", f"Search all incidents for {text}"
    )
    context = {
        "groups": [(name, places) for name, places in groups if places],
        "rest": rest if text else None,
    }
    return render(request, "frontend/inbox/palette_results.html", context)


def _incidents(text: str) -> list[Place]:
    """By number, or by what title and component hold."""
    number = text.removeprefix("#")
    found: list[queries.View] = []
    if number.isascii() and number.isdecimal() and len(number) < 16:
        found += queries.list_incidents(queries.parse_filters({"number": [number]})).items
    if text and not text.startswith("#"):
        found += queries.with_title(text, MOST)
    unique = {view.incident.number: view.incident for view in found}
    return [_incident(it) for it in unique.values()][:MOST]


def _incident(it: queries.Incident) -> Place:
    return Place(reverse("incident", args=[it.number]), it.title, f"#{it.number}", it.state)


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
    wanted = text.casefold()
    fitting = [place for place in places if wanted in place.words.casefold()]
    fitting.sort(key=lambda place: not place.words.casefold().startswith(wanted))
    return fitting[: MOST if text else len(SECTIONS)]


def _components(text: str) -> list[Place]:
    if len(text) < SHORTEST:
        return []
    names: Sequence[str] = ()
    now = datetime.now(UTC)
    for region in regions():
        names = [*names, *topology_snapshot(region, now).found(text)[:MOST]]
    unique = list(dict.fromkeys(names))[:MOST]
    return [Place(address, name) for name in unique if (address := component_url(name))]
