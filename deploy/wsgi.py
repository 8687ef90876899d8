"""Pages, API and endpoints: a WSGI application, served by threads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIRequest, get_path_info
from django.core.wsgi import get_wsgi_application
from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest, HttpResponse
from django.middleware.security import SecurityMiddleware


class ShortWay:
    """Hands requests of machines to their endpoints, everything else to Django's own application.

    A body of a hundred rows costs more to bring to its endpoint through signals, middleware that has nothing to do
    with it and an answer that is given out piece by piece, than to read. What an endpoint needs of that is here: what
    every request passes (`RequestContext`), a look at the connection, the headers of `SecurityMiddleware`, an answer to
    any error.
    """

    def __init__(self, pages: WSGIApplication) -> None:
        from deploy.middleware import (
            RequestContext,  # when Django is set up
            answer,
            find_endpoint,
        )

        self._pages = pages
        self._find_endpoint = find_endpoint
        self._answer: Any = convert_exception_to_response(RequestContext(answer))
        plain = SecurityMiddleware(lambda _: HttpResponse())(HttpRequest())
        assert isinstance(plain, HttpResponse)
        self._headers = [header for header in plain.items() if header[0] != "Content-Type"]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        endpoint = (
            self._find_endpoint(get_path_info(environ), "POST")
            if environ["REQUEST_METHOD"] == "POST"
            else None
        )
        if endpoint is None:
            return self._pages(environ, start_response)
        connections[DEFAULT_DB_ALIAS].close_if_unusable_or_obsolete()  # as Django does when a request begins
        request = WSGIRequest(environ)
        request.resolver_match = endpoint
        response: HttpResponse = self._answer(request)
        status = f"{response.status_code} {response.reason_phrase}"
        start_response(status, [*response.items(), *self._headers])
        return [response.content]  # a list: the server takes it at once


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
application = ShortWay(get_wsgi_application())
# What Django loads with the first request takes a second or more: before the process listens, not while a sender waits.
import_module(settings.ROOT_URLCONF)
