"""An incident among the others of the list that one came from: its place there, its neighbours, the way back."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from django.urls import reverse

from frontend.views.listing import ORDERS, PAGE, Listing, address, listing_of
from incidents import queries
from incidents.commands import InvalidValueError

LIST, PLACE = "list", "place"
"""Parameters of an incident's address: the list that it was opened from, and its mark there."""
_LONGEST = 4000


@dataclass(frozen=True, slots=True)
class ListContext:
    """What an incident's page shows of the list. `tail` is what its own addresses carry on, `""` without a list."""

    query: str = ""
    tail: str = ""
    words: str = ""
    back: str = ""
    standing: queries.ListPosition | None = None
    previous: str = ""
    next: str = ""


def of_list(listing: Listing, given: QueryDict) -> str:
    """The list of an address, as the addresses of its incidents carry it."""
    return address(given, tab=listing.tab.name, cursor=None).removeprefix("?")


def among(request: HttpRequest, number: int) -> ListContext:
    """Of the list that the address of an incident names. A list that makes no sense is none: the incident is shown."""
    asked = request.GET.get(LIST, "")
    if not asked or len(asked) > _LONGEST or "\0" in asked:
        return ListContext()
    given = QueryDict(asked)
    at = request.GET.get(PLACE) or None
    try:
        listing = listing_of(request, given)
        standing = None if listing.problems else _list_position(listing, number, at)
    except InvalidValueError:
        return ListContext()
    query = carried(request)
    return ListContext(
        query=query,
        tail=query.replace("?", "&", 1),
        words=_words(listing),
        back=_back(given, number, standing),
        standing=standing,
        previous=_beside(None if standing is None else standing.previous, asked, given),
        next=_beside(None if standing is None else standing.next, asked, given),
    )


def carried(request: HttpRequest) -> str:
    """What an address of the incident says of its list, as the query of another one; empty where it says nothing."""
    kept = {name: value for name in (LIST, PLACE) if (value := request.GET.get(name))}
    return f"?{urlencode(kept)}" if LIST in kept and len(kept[LIST]) <= _LONGEST else ""


def _list_position(listing: Listing, number: int, at: str | None) -> queries.ListPosition | None:
    try:
        view = queries.get(str(number), listing.as_of)
    except queries.IncidentNotFoundError:
        return None  # not there yet at the moment of the list
    groups = [listing.within_group(n) for n in range(len(listing.tab.groups))]
    return queries.list_position(groups, listing.order, view, at, listing.as_of)


def _beside(neighbour: queries.Neighbour | None, asked: str, given: QueryDict) -> str:
    if neighbour is None:
        return ""
    moment = given.get("as_of")
    kept = {LIST: asked, PLACE: neighbour.mark, **({"as_of": moment} if moment else {})}
    return f"{reverse('incident', args=[neighbour.view.incident.number])}?{urlencode(kept)}"


def _back(given: QueryDict, number: int, standing: queries.ListPosition | None) -> str:
    """To the row: on the first page, or on one that begins with it."""
    cursor = None
    if standing is not None and standing.previous is not None and (standing.place or PAGE + 1) > PAGE:
        cursor = standing.previous.mark
    return f"{reverse('inbox')}{address(given, cursor=cursor)}#t{number}"


def _words(listing: Listing) -> str:
    """`Unresolved`, `Resolved: team:storage, Newest first`."""
    usual = listing.order == ORDERS[0][0]
    said = [listing.text, "" if usual else dict(ORDERS)[listing.order]]
    rest = ", ".join(one for one in said if one)
    return f"{listing.tab.words}: {rest}" if rest else listing.tab.words
