"""Long lists of settings: a search over what each line says, and pages. `?q=` finds, `?page=` turns, `?show=` opens
the page on which one of them stands, so that links to it lead there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlencode

from django.http import HttpRequest

from incidents.domain.values import InvalidValueError, check_line

PAGE = 50
"""Lines of a page."""
T = TypeVar("T")


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
    kept: Mapping[str, str]
    """What else the address says, which a search takes along."""

    @property
    def cleared(self) -> str:
        return f"{self.path}?{urlencode(self.kept)}" if self.kept else self.path

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
    kept: Collection[str] = (),
) -> Listed[T]:
    """Those lines in whose `words` all that was typed occurs, in any case, a page of them; `names` are what `?show=`
    calls one; `path` is that of the list where the request's is another; parameters in `kept` say which list it is.
    Raises InvalidValueError."""
    path = path or request.path
    text = check_line("q", request.GET.get("q", ""), blank=True)
    wanted = text.casefold().split()
    found = [row for row in rows if _fits(words(row), wanted)] if wanted else rows
    pages = max(1, -(-len(found) // PAGE))
    number = min(_number(request, found, names), pages)
    start = (number - 1) * PAGE
    return Listed(
        found[start : start + PAGE],
        len(found),
        len(rows),
        text,
        start + 1,
        path + _address(request, number - 1) if number > 1 else "",
        path + _address(request, number + 1) if number < pages else "",
        path,
        {name: request.GET[name] for name in kept if name in request.GET},
    )


def _fits(words: str, wanted: Sequence[str]) -> bool:
    said = words.casefold()
    return all(one in said for one in wanted)


def _number(request: HttpRequest, rows: Sequence[T], names: Callable[[T], Collection[str]]) -> int:
    if shown := request.GET.get("show"):
        return 1 + next((place for place, row in enumerate(rows) if shown in names(row)), 0) // PAGE
    asked = request.GET.get("page", "1")
    if not (asked.isascii() and asked.isdecimal() and len(asked) <= 9 and int(asked) >= 1):
        raise InvalidValueError("page", "must be a number from 1 on")
    return int(asked)


def _address(request: HttpRequest, number: int) -> str:
    kept = {
        name: value for name, value in request.GET.items() if value and name not in ("page", "show", "edit")
    }
    return "?" + urlencode({**kept, "page": number})
