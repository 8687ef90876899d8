"""Pages, API and doors: a WSGI application, served by threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from importlib import import_module
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIRequest
from django.core.wsgi import get_wsgi_application
from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest, HttpResponse
from django.middleware.security import SecurityMiddleware


class ReadsAtOnce:
    """Lets `most` reads at a time through and refuses the others with 503, so that senders always find a thread.

    Refused and not kept waiting: who waits here holds the very thread that is to be left free. Alertmanager does the
    same with its reads. What says whether Dossier is well, and files, are never refused; what writes is no read.
    """

    EXEMPT = ("/healthz", "/readyz", "/metrics", "/static/")
    BUSY = b"Dossier is busy: too much is being read at the same time. Try again in a second.\n"

    def __init__(self, pages: WSGIApplication, most: int) -> None:
        from deploy.metrics import READS_REFUSED

        self._pages = pages
        self._free = threading.Semaphore(most)
        self._refused = READS_REFUSED

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        is_read = environ["REQUEST_METHOD"] in ("GET", "HEAD")
        if not is_read or environ["PATH_INFO"].startswith(self.EXEMPT):
            return self._pages(environ, start_response)
        if not self._free.acquire(blocking=False):
            self._refused.inc()
            # Plain text: the console's scripts take that for "not now" and ask again.
            headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(self.BUSY)))]
            start_response("503 Service Unavailable", [*headers, ("Retry-After", "1")])
            return [self.BUSY]
        try:
            return self._pages(environ, start_response)
        finally:
            self._free.release()


class ShortWay:
    """Hands what machines send to their doors to the doors, and everything else to Django's own application.

    A body of a hundred rows costs more to bring to its door through signals, middleware that has nothing to do with it
    and an answer that is given out piece by piece, than to read. What a door needs of that is here: what every request
    passes (`RequestContext`), a look at the connection, the headers of `SecurityMiddleware`, an answer to any error.
    """

    def __init__(self, pages: WSGIApplication) -> None:
        from deploy.middleware import RequestContext  # when Django is set up
        from ingest.api.middleware import answer, find_door

        self._reads = ReadsAtOnce(pages, settings.READS_AT_ONCE)
        self._find_door = find_door
        self._answer: Any = convert_exception_to_response(RequestContext(answer))
        plain = SecurityMiddleware(lambda _: HttpResponse())(HttpRequest())
        assert isinstance(plain, HttpResponse)
        self._headers = [header for header in plain.items() if header[0] != "Content-Type"]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        door = self._find_door(environ["PATH_INFO"], "POST") if environ["REQUEST_METHOD"] == "POST" else None
        if door is None:
            return self._reads(environ, start_response)
        connections[DEFAULT_DB_ALIAS].close_if_unusable_or_obsolete()  # as Django does when a request begins
        request = WSGIRequest(environ)
        request.resolver_match = door
        response: HttpResponse = self._answer(request)
        status = f"{response.status_code} {response.reason_phrase}"
        start_response(status, [*response.items(), *self._headers])
        return [response.content]  # a list: the server takes it at once


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
application = ShortWay(get_wsgi_application())
# What Django loads with the first request takes a second or more: before the process listens, not while a sender waits.
import_module(settings.ROOT_URLCONF)
