"""Pages of lists, the same for the API and the console: `?cursor=` and `?limit=` in, `next` and `previous` out.

A cursor of rows holds the edge of a page in the order of the list (keyset paging): the cost of a page does not grow
with its place, and rows that come or go meanwhile neither repeat nor hide others. A cursor of a list that is made in
memory is the number of lines before it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, Generic, TypeVar

from django.core.exceptions import ValidationError as UnfitError
from django.db.models import DateTimeField, Field, Model, Q, QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.utils.urls import replace_query_param

LIMIT, MOST = 50, 200
"""Lines of a page: without `limit`, and at most."""
Columns = Sequence[tuple[str, bool]]
"""Order of a list: its columns, and whether each descends. Together they are unique, so that a page has an edge."""
T = TypeVar("T")
M = TypeVar("M", bound=Model)


class PageError(ValueError):
    """A page that cannot be asked for: the parameter that is wrong and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list; `next` and `previous` are cursors or None."""

    items: list[T]
    next: str | None
    previous: str | None


def parse_limit(text: str | None, default: int = LIMIT) -> int:
    """Lines of a page. Raises PageError."""
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= MOST):
        raise PageError("limit", f"must be 1 to {MOST}")
    return int(text)


def as_json(page: Page[Any], results: Sequence[Any], address: str) -> dict[str, Any]:
    """A page as the API answers it; `address` is that of the request."""
    return {
        "results": results,
        "next": page.next and replace_query_param(address, "cursor", page.next),
        "previous": page.previous and replace_query_param(address, "cursor", page.previous),
    }


# Rows
# ----------------------------------------------------------------------------------------------------------


def page_of(
    fetch: Callable[[Columns, list[Any] | None, int], list[T]],
    edge_of: Callable[[T], Sequence[Any]],
    columns: Columns,
    model: type[Model],
    cursor: str | None,
    limit: int,
) -> Page[T]:
    """A page of what `fetch(columns, edge, limit)` reads beyond an edge. Raises PageError for a cursor that is none."""
    back, edge = (False, None) if not cursor else read_cursor(cursor, columns, model)
    found = fetch([(name, descends != back) for name, descends in columns], edge, limit + 1)
    more, found = len(found) > limit, found[:limit]
    if back:
        found.reverse()
    follows, precedes = (edge is not None, more) if back else (more, edge is not None)
    return Page(
        found,
        write_cursor(columns, edge_of(found[-1])) if found and follows else None,
        write_cursor(columns, edge_of(found[0]), back=True) if found and precedes else None,
    )


def page_of_rows(rows: QuerySet[M], columns: Columns, cursor: str | None, limit: int = LIMIT) -> Page[M]:
    """A page of the rows of a table. Raises PageError for a cursor that is none."""

    def fetch(columns: Columns, edge: list[Any] | None, limit: int) -> list[M]:
        found = in_order(rows, columns)
        return list((found if edge is None else found.filter(beyond(columns, edge)))[:limit])

    return page_of(
        fetch, lambda row: [getattr(row, name) for name, _ in columns], columns, rows.model, cursor, limit
    )


def in_order(rows: QuerySet[M], columns: Columns) -> QuerySet[M]:
    return rows.order_by(*(f"-{name}" if descends else name for name, descends in columns))


def beyond(columns: Columns, edge: Sequence[Any]) -> Q:
    """The rows after an edge."""
    return reduce(or_, stretches_beyond(columns, edge))


def stretches_beyond(columns: Columns, edge: Sequence[Any]) -> list[Q]:
    """The rows after an edge, as conditions of which never two hold at once: each is one stretch of an index."""
    stretches, equal = [], Q()
    for (name, descends), value in zip(columns, edge, strict=True):
        stretches.append(equal & Q(**{f"{name}__{'lt' if descends else 'gt'}": value}))
        equal &= Q(**{name: value})
    return stretches


def write_cursor(columns: Columns, edge: Sequence[Any], *, back: bool = False) -> str:
    text = json.dumps([_name(columns), back, edge], default=str)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str, columns: Columns, model: type[Model]) -> tuple[bool, list[Any]]:
    """Whether a page goes back, and its edge: values of the columns of `model`. Raises PageError."""
    text = cursor[:1000]
    try:
        name, back, edge = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if name == _name(columns) and isinstance(back, bool) and "\0" not in str(edge):
            return back, [_value(model, name, one) for (name, _), one in zip(columns, edge, strict=True)]
    except (ValueError, TypeError, OverflowError, UnfitError, binascii.Error, RecursionError):
        pass
    raise PageError("cursor", "must be a cursor of this list, from its `next` or `previous`")


def _name(columns: Columns) -> str:
    return ",".join(f"-{name}" if descends else name for name, descends in columns)


def _value(model: type[Model], column: str, value: Any) -> Any:
    field = model._meta.get_field(column)
    assert isinstance(field, Field)
    if isinstance(value, list | dict) or value is None:
        raise ValueError(column)
    if isinstance(field, DateTimeField):
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError(column)
        return moment
    return field.to_python(value)


# Lists in memory
# ----------------------------------------------------------------------------------------------------------


def parse_start(cursor: str | None) -> int:
    """The number of lines before a page. Raises PageError."""
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise PageError("cursor", "must be a cursor of this list, from its `next` or `previous`")
    return int(cursor or 0)


def page_at(items: list[T], start: int, total: int, limit: int = LIMIT) -> Page[T]:
    """The page of `items` that begins after `start` of `total` lines."""
    after, before = start + limit, max(0, start - limit)
    return Page(items, str(after) if after < total else None, str(before) if start else None)


# Django REST framework
# ----------------------------------------------------------------------------------------------------------


PAGE_PARAMETERS = [
    OpenApiParameter("cursor", str, description="from `next` or `previous`"),
    OpenApiParameter("limit", int, description=f"1 to {MOST}, default {LIMIT}"),
]


class PageShape(serializers.Serializer[Any]):
    """A page; the shapes of the lists add `results`."""

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)


class Pages(CursorPagination):
    """`page_of_rows` in the order of `ordering`, which is unique."""

    page_size = LIMIT
    max_page_size = MOST
    page_size_query_param = "limit"
    ordering: tuple[str, ...]

    def paginate_queryset(self, queryset: Any, request: Any, view: Any = None) -> list[Any]:  # noqa: ARG002
        query: Mapping[str, str] = request.query_params
        columns = [(name.removeprefix("-"), name.startswith("-")) for name in self.ordering]
        try:
            limit = parse_limit(query.get("limit"), self.page_size or LIMIT)
            self._page = page_of_rows(queryset, columns, query.get("cursor"), limit)
        except PageError as error:
            raise ValidationError({error.field: [error.reason]}) from error
        self._address = request.build_absolute_uri()
        return self._page.items

    def get_next_link(self) -> str | None:
        return self._page.next and replace_query_param(self._address, "cursor", self._page.next)

    def get_previous_link(self) -> str | None:
        return self._page.previous and replace_query_param(self._address, "cursor", self._page.previous)
