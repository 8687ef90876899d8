"""A search of the inbox as filters of a list: one reading of the text for the console and the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from incidents.domain import search as searching
from incidents.domain.search import Problem, Term
from incidents.search.filters import Filter

_NONE = "none"
_SIGNS = {">": "above", ">=": "min", "<": "below", "<=": "max"}
_FIELDS = {"cause": "confirmed_cause"}


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """Meaning of a search; where it has problems, nothing is known of it."""

    search: searching.Search
    filters: tuple[Filter, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.search.problems


def search_query(
    text: str, now: datetime, me: str | None = None, teams: Sequence[str] | None = None
) -> SearchQuery:
    """The filters of a search. `me` is who asks, for `owner:me`; `teams` are those that there are."""
    search = searching.read(text, teams)
    if me is None:
        mine = [term for term in search.terms if term.field == "owner" and "me" in term.values]
        problems = [Problem(term.written, "“me” needs a signed-in person; name the owner") for term in mine]
        search = searching.Search(search.terms, (*search.problems, *problems))
    if search.problems:
        return SearchQuery(search, ())
    return SearchQuery(search, tuple(_filters(search.terms, now, me)))


def _filters(terms: Sequence[Term], now: datetime, me: str | None) -> list[Filter]:
    """Values of one field are alternatives, as in the API; what is not wanted holds back each for itself."""
    filters: list[Filter] = []
    wanted: dict[str, list[str]] = {}
    for term in terms:
        if term.negated or term.field in _EACH:
            each = (_one(term.field, value, now, me) for value in term.values)
            filters += [Filter(f.field, f.operator, f.value, f.negated != term.negated) for f in each]
        else:
            wanted.setdefault(term.field, []).extend(term.values)
    return filters + [_any(field, values, me) for field, values in wanted.items()]


_EACH = {"", "label", "is", "age", *searching.NUMBERS}
"""Fields that an incident has several of, or that are bounds: all have to hold."""


def _any(field: str, values: Sequence[str], me: str | None) -> Filter:
    if field == "component":
        return Filter("component", "glob", tuple(_or_none(value) for value in values))
    return Filter(
        _FIELDS.get(field, field), "in", tuple(one for value in values for one in _values(field, value, me))
    )


def _values(field: str, value: str, me: str | None) -> tuple[Any, ...]:
    if field == "number":
        return (int(value.removeprefix("#")),)
    if field == "state":
        return ("open", "acknowledged", "snoozed") if value.lower() == "unresolved" else (value.lower(),)
    if field == "severity":
        return (value.lower(),)
    if field == "owner" and value == "me":
        return (me,)
    return (value,) if field == "team" else (_or_none(value),)


def _or_none(value: str) -> str | None:
    return None if value == _NONE else value


def _one(field: str, value: str, now: datetime, me: str | None) -> Filter:
    if field == "":
        return Filter("title", "search", value)
    if field == "label":
        name, sign, found = value.partition("=")
        return Filter("labels", "label", (name, found if sign else None))
    if field == "is":
        return _FLAGS[value.lower()]
    if field == "age":
        sign, minutes = searching.age(value)
        return Filter("opened_at", "after" if sign == "<" else "before", now - timedelta(minutes=minutes))
    if field in searching.NUMBERS:
        return _bound(field, value)
    return _any(field, [value], me)


def _bound(field: str, value: str) -> Filter:
    sign, number = searching.compared(value)
    exact = number if field == "confidence" else int(number)
    if sign == "=":
        return Filter(field, "in", (exact,))
    return Filter(field, _SIGNS[sign], exact)  # type: ignore[arg-type]  # one of the operators


_FLAGS = {
    "flapping": Filter("flapping", "in", (True,)),
    "firing": Filter("firing", "above", 0),
    "blamed": Filter("blamed_by", "filled", True),
    "merged": Filter("merged_number", "in", (None,), negated=True),
    "handed_over": Filter("handed_from", "in", (None,), negated=True),
    "storm": Filter("dedup_key", "glob", ("storm:",)),
}
