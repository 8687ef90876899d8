"""A short way for senders: they bring a key and no cookie, so sessions, logins and messages are not for them.

They are a third of what a body of a hundred rows costs the web server. Stands after the middleware that every request
passes (its id, its log line, its metrics).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import ResolverMatch, resolve

from ingest.log.configuration_events import hearing_of_changes, receipt_of_change

ENDPOINTS = ("/api/v1/telemetry/", "/v1/", "/api/v1/write", "/v2/", "/integrations/")
POSTED = "/api/v2/alerts"
"""An endpoint for who posts; who reads there may be a person."""

GetResponse = Callable[[HttpRequest], HttpResponse]
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
    """What the endpoint says that `request.resolver_match` leads to."""
    match = request.resolver_match
    assert match is not None
    response: HttpResponse = match.func(request, *match.args, **match.kwargs)
    response["Content-Length"] = str(len(response.content))  # as CommonMiddleware does
    return response


class ReceiptsOfChanges:
    """Who changes the configuration over the API gets a receipt, as every sender does: the transaction that did it."""

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


class ShortWayForTelemetry:
    """Calls the endpoint's view past the middleware that comes after this one."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        door = find_endpoint(request.path_info, request.method)
        if door is None:
            return self.get_response(request)
        request.resolver_match = door
        return answer(request)
