"""Middleware: an id of each request that its logs and events carry, a content security policy, a limit of bodies,
receipts of changes, and the direct path of senders to their endpoints: they bring a key and no cookie, so sessions,
logins and messages are not for them. Those are a third of what a body of a hundred rows costs the web server."""

from __future__ import annotations

import functools
import logging
import re
import time
import uuid
from collections.abc import Callable

import structlog
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import ResolverMatch, resolve

from deploy.gateway import PROBES
from deploy.observability import metrics
from ingest.api.problem_details import problem
from ingest.log.configuration_events import hearing_of_changes, receipt_of_change

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
        if request.path_info in PROBES:
            # Kubernetes and Prometheus ask each pod by its address, which is no host name of pages.
            request.META["HTTP_HOST"] = settings.ALLOWED_HOSTS[0].lstrip(".").replace("*", "localhost")
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

    A form is read, whole and into memory, before it is asked who sent it: a stranger's, too. The endpoints of machines,
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
            f"manifest-src 'self'; connect-src 'self' {live}; "
            "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        )
        return response


ENDPOINTS = ("/api/v1/telemetry/", "/v1/", "/api/v1/write", "/v2/", "/integrations/")
POSTED = "/api/v2/alerts"
"""An endpoint for who posts; who reads there may be a person."""

_resolved = functools.lru_cache(maxsize=64)(resolve)  # addresses of kinds are few, and always asked for


def find_endpoint(path: str, method: str | None) -> ResolverMatch | None:
    """The endpoint at a path, None when there is no endpoint for machines."""
    if not path.startswith(ENDPOINTS) and (path != POSTED or method != "POST"):
        return None
    try:
        return _resolved(path)
    except Http404:
        return None


def answer(request: HttpRequest) -> HttpResponse:
    """Answer of the endpoint that `request.resolver_match` leads to."""
    match = request.resolver_match
    assert match is not None
    response: HttpResponse = match.func(request, *match.args, **match.kwargs)
    response["Content-Length"] = str(len(response.content))  # as CommonMiddleware does
    return response


class ChangeReceipts:
    """Receipts of configuration changes over the API: the transaction that made them."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method in ("GET", "HEAD") or not request.path_info.startswith("/api/"):
            return self.get_response(request)
        with hearing_of_changes() as changes:
            response = self.get_response(request)
        if changes and response.status_code < 300 and "Dossier-Receipt" not in response:
            response["Dossier-Receipt"] = receipt_of_change(changes[-1].position)
        return response


class SenderEndpoints:
    """Calls the endpoint's view past the middleware that comes after this one."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        endpoint = find_endpoint(request.path_info, request.method)
        if endpoint is None:
            return self.get_response(request)
        request.resolver_match = endpoint
        return answer(request)
