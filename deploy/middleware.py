"""What every request passes: an id that its logs and events carry, and a strict content security policy."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from deploy.observability import metrics
from ingest.api.problem_details import problem

GetResponse = Callable[[HttpRequest], HttpResponse]
log = structlog.get_logger("request")
_lines = logging.getLogger("request")
SECRETS = frozenset({"key", "secret", "token"})
"""Parts of addresses that are not logged."""
_TRACE = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class RequestContext:
    """Give the request an id (`request.trace`): the sender's X-Request-ID if it has one, else a new one."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.META.get(
            "HTTP_X_REQUEST_ID", ""
        )  # request.headers would look at every variable there is
        trace = given if given and _TRACE.fullmatch(given) else uuid.uuid4().hex
        request.trace = trace  # type: ignore[attr-defined]
        bound = structlog.contextvars.bind_contextvars(trace=trace)
        try:
            response = self._answered(request)
        finally:
            structlog.contextvars.reset_contextvars(**bound)
        response["X-Request-ID"] = trace
        return response

    def _answered(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        response = self.get_response(request)
        seconds = time.perf_counter() - started
        metrics.observe(request, response, seconds)
        # A body a millisecond is routine: metrics count them, and the log of events names each one's trace.
        routine = response.status_code == 202 or (
            response.status_code == 200 and "Dossier-Receipt" in response
        )
        if not routine or _lines.isEnabledFor(logging.DEBUG):
            tell = log.debug if routine else log.info
            tell(
                "answered",
                method=request.method,
                path=_without_secrets(request),
                status=response.status_code,
                ms=round(seconds * 1000, 1),
            )
        return response


def _without_secrets(request: HttpRequest) -> str:
    """The path; what in it is as good as a password is named instead."""
    path, match = request.path, request.resolver_match
    given = match.kwargs if match else {}
    for name in SECRETS & given.keys():
        path = path.replace(str(given[name]), f"<{name}>")
    return path


class BodyLimit:
    """Pages and the API take bodies up to `MOST`, and refuse larger ones unread.

    A form is read, whole and into memory, before it is asked who sent it: a stranger's, too. The doors of machines,
    which take more and know their sender first, are answered before this. A body without a length is none to Django.
    """

    MOST = 4 * 2**20
    """Bytes; what a view takes at most is less."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if length.isdecimal() and int(length[:20]) <= self.MOST:
            return self.get_response(request)
        return problem(
            413, "Content Too Large", f"Nothing was stored: the body is larger than {self.MOST} bytes."
        )


class ContentSecurityPolicy:
    """Only our own files, nothing inline, nothing evaluated; live updates may come from their own port."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        host = request.META.get("HTTP_HOST", "localhost").rsplit(":", 1)[0]
        live = settings.EVENTS_URL or f"{request.scheme}://{host}:{settings.EVENTS_PORT}"
        response.setdefault(
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
            f"connect-src 'self' {live}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        )
        return response
