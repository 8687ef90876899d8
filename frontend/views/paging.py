"""Pages of lists in the console, by `ingest.api.pagination`: `?cursor=` turns. Lists of settings have a search over
their lines, too: `?q=` finds, `?show=` opens the page with one line, so that links to it lead there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from django.db.models import Model, QuerySet
from django.http import HttpRequest

from incidents.domain.values import InvalidValueError, check_line
from ingest.api import pagination
from ingest.api.pagination import LIMIT as PAGE
from ingest.api.pagination import Columns, PageError, page_at, parse_start

T = TypeVar("T")
M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Pager:
    """Addresses of the pages before and after one, empty for none."""

    back: str
    more: str


def page_of_rows(request: HttpRequest, rows: QuerySet[M], columns: Columns) -> tuple[list[M], Pager]:
    """The rows of the page of a table that is asked for. Raises InvalidValueError."""
    try:
        page = pagination.page_of_rows(rows, columns, request.GET.get("cursor"))
    except PageError as error:
        raise InvalidValueError(error.field, error.reason) from error
    return page.items, _pager(request, page)


def page_of_lines(request: HttpRequest, lines: Sequence[T], limit: int = PAGE) -> tuple[Sequence[T], Pager]:
    """The lines of the page of a list that is asked for. Raises InvalidValueError."""
    start = _start(request)
    page = page_at(list(lines[start : start + limit]), start, len(lines), limit)
    return page.items, _pager(request, page)


def _pager(request: HttpRequest, page: pagination.Page[Any], path: str = "") -> Pager:
    back, more = (
        path + _address(request, cursor) if cursor is not None else ""
        for cursor in (page.previous, page.next)
    )
    return Pager(back, more)


def _start(request: HttpRequest) -> int:
    try:
        return parse_start(request.GET.get("cursor"))
    except PageError as error:
        raise InvalidValueError(error.field, error.reason) from error


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """A page of what was found: `total` of `of` lines fit `text`; `back` and `more` are addresses, empty for none."""

    rows: Sequence[T]
    total: int
    of: int
    text: str
    first: int
    back: str
    more: str
    path: str
    """Of the page of the list, which may be shown in answer to a form with an address of its own."""
    carried: Mapping[str, str]
    """Rest of the address, which a search carries on."""

    @property
    def cleared(self) -> str:
        return f"{self.path}?{urlencode(self.carried)}" if self.carried else self.path

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1

    @property
    def long(self) -> bool:
        """Whether it takes a search to find something in it."""
        return self.of > PAGE // 5 or bool(self.text)


def listed(
    request: HttpRequest,
    rows: Sequence[T],
    words: Callable[[T], str],
    names: Callable[[T], Collection[str]],
    path: str = "",
    carried: Collection[str] = (),
    limit: int = PAGE,
) -> Listed[T]:
    """Those lines in whose `words` all that was typed occurs, in any case, a page of `limit`; `names` are what `?show=`
    calls one; `path` is that of the list where the request's is another; parameters in `carried` say which list it is.
    Raises InvalidValueError."""
    path = path or request.path
    text = check_line("q", request.GET.get("q", ""), blank=True)
    wanted = text.casefold().split()
    found = [row for row in rows if _fits(words(row), wanted)] if wanted else rows
    start = min(_first_shown(request, found, names, limit), max(0, len(found) - 1) // limit * limit)
    page = page_at(list(found[start : start + limit]), start, len(found), limit)
    pager = _pager(request, page, path)
    return Listed(
        page.items,
        len(found),
        len(rows),
        text,
        start + 1,
        pager.back,
        pager.more,
        path,
        {name: request.GET[name] for name in carried if name in request.GET},
    )


def _fits(words: str, wanted: Sequence[str]) -> bool:
    text = words.casefold()
    return all(one in text for one in wanted)


def _first_shown(
    request: HttpRequest, rows: Sequence[T], names: Callable[[T], Collection[str]], limit: int
) -> int:
    if shown := request.GET.get("show"):
        return next((place for place, row in enumerate(rows) if shown in names(row)), 0) // limit * limit
    return _start(request)


def _address(request: HttpRequest, cursor: str) -> str:
    same = {
        name: value for name, value in request.GET.items() if value and name not in ("cursor", "show", "edit")
    }
    return "?" + urlencode({**same, **({"cursor": cursor} if cursor != "0" else {})})
