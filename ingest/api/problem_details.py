"""Errors as RFC 9457 problems (`application/problem+json`)."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_handler

from ingest.db import disk
from ingest.db.database import is_away, is_full

CONTENT_TYPE = "application/problem+json"


def problem(status: int, title: str, detail: str = "", **more: Any) -> HttpResponse:
    """An answer that says what went wrong; `more` are members of the problem, such as `errors`."""
    body = {
        "type": "about:blank",
        "title": title,
        "status": status,
        **({"detail": detail} if detail else {}),
        **more,
    }
    return HttpResponse(json.dumps(body), status=status, content_type=CONTENT_TYPE)


def down(error: BaseException | None = None) -> str:
    """Reason why nothing can be stored, where the database does not answer or refused with `error`."""
    if is_full(error):
        return "The disk of the database is full; nothing was stored."
    if disk.state() == "full":
        return "The disk of Dossier is full and the database does not answer; nothing was stored."
    return "The database does not answer; nothing was stored."


class ServiceUnavailableError(exceptions.APIException):
    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    wait = 5
    """Seconds, which DRF says as `Retry-After`."""

    def __init__(self, error: BaseException | None = None) -> None:
        super().__init__(f"{down(error)} Try again.")


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Problem for an exception of DRF, with the `members` that it has. Of others only a database that is away."""
    if is_away(exc):
        exc = ServiceUnavailableError(exc)
    response = drf_handler(exc, context)
    if response is None:
        return None
    status = HTTPStatus(response.status_code)
    body: dict[str, Any] = {"type": "about:blank", "title": status.phrase, "status": status.value}
    if isinstance(exc, exceptions.ValidationError):
        body |= {"detail": "The request is not valid here.", "errors": response.data}
    elif isinstance(response.data, dict) and "detail" in response.data:
        body["detail"] = str(response.data["detail"])
    response.data = body | getattr(exc, "members", {})
    response.content_type = CONTENT_TYPE
    return response
