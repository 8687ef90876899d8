"""Forms that end in the serializer by which the API takes the same thing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from rest_framework.serializers import BaseSerializer

Typed = Mapping[str, Any]
M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Read:
    """Typed text as a body of the API, and errors by field that cannot be read."""

    data: dict[str, Any]
    problems: dict[str, str] = field(default_factory=dict)


def edited(
    request: HttpRequest,
    begun: Callable[[], Typed],
    read: Callable[[], tuple[Typed, Read]],
    serializer: Callable[[dict[str, Any]], BaseSerializer[Any]],
    keep: Callable[[BaseSerializer[Any]], str],
    form: Callable[[Typed, Mapping[str, str]], HttpResponse],
) -> HttpResponse:
    """Show the form as it begins; once it is sent, keep it and go to the address that `keep` gives, or show it once
    more as it was typed, with what is wrong beside the fields."""
    if request.method != "POST":
        return form(begun(), {})
    typed, found = read()
    if found.problems:
        return form(typed, found.problems)
    shape = serializer(found.data)
    if not shape.is_valid():
        return form(typed, {name: _words(why) for name, why in dict(shape.errors).items()})
    return HttpResponseRedirect(keep(shape))


def named(rows: QuerySet[M], name: str, what: str) -> M:
    """The one of that name. Raises Http404."""
    row = rows.filter(name=name).first()
    if row is None:
        raise Http404(f"no {what} {name}")
    return row


def _words(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
