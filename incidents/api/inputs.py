"""Reading requests: their fields, and who sent them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from incidents import queries
from incidents.domain.values import InvalidValueError, check_line, parse_rfc3339
from incidents.incident.repository import ExpectedContext, seen_from
from ingest.queries import Context


def fields(request: Request, shape: type[Serializer[Any]]) -> dict[str, Any]:
    """The body's fields, all of them known to `shape`; null counts as absent where it may be left out.

    Types and contents are checked by the command that takes them, for the API and the console alike.
    """
    body = request.data
    if not isinstance(body, dict):
        raise ValidationError({"body": ["must be a JSON object"]})
    return checked(body, shape)


def checked(body: Mapping[str, Any], shape: type[Serializer[Any]], within: str = "") -> dict[str, Any]:
    """The same of an object inside a body; errors name its fields after `within`."""
    known = shape().fields
    errors = {f"{within}{name[:100]}": ["is not a field here"] for name in sorted(set(body) - set(known))}
    given = {
        name: value
        for name, value in body.items()
        if value is not None or (name in known and known[name].allow_null)
    }
    errors |= {
        f"{within}{name}": ["is required"]
        for name, field in known.items()
        if field.required and name not in given
    }
    if errors:
        raise ValidationError(errors)
    return given


def time_of(field: str, text: object) -> datetime | None:
    """A time in a body; None where there is none. Raises InvalidValueError."""
    if text is None:
        return None
    try:
        return parse_rfc3339(check_line(field, text))
    except (ValueError, OverflowError):
        raise InvalidValueError(
            field, "must be an RFC 3339 time with an offset, such as 2026-11-21T10:00:00Z"
        ) from None


def sequence(field: str, given: object) -> Sequence[Any]:
    """A list in a body, whatever its items are. Raises InvalidValueError."""
    if not isinstance(given, list | tuple):
        raise InvalidValueError(field, "must be a list")
    return given


def reference(field: str, given: object) -> str:
    """The id of the incident that a body names by id or number. Raises InvalidValueError where there is none."""
    text = str(given) if isinstance(given, int) and not isinstance(given, bool) else check_line(field, given)
    try:
        return queries.get(text).incident.id
    except queries.IncidentNotFoundError:
        raise InvalidValueError(field, "no such incident") from None


def context(request: Request) -> Context:
    """Actor, the id of the request, and with `If-Match` the version of the incident that they saw."""
    kind = "user" if request.auth is None else "key"
    actor, seen = f"{kind}:{request.user.get_username()}", request.headers.get("If-Match", "")
    return ExpectedContext(actor, trace=getattr(request, "trace", None), seen=seen_from("If-Match", seen))
