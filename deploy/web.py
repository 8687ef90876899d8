"""A web process as `manage.py up` starts it: the application behind its gateway, its cores, few garbage collections."""

from __future__ import annotations

import gc
import os
import resource
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from wsgiref.types import WSGIEnvironment

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth import SESSION_KEY  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connections  # noqa: E402

from deploy.gateway import SMALL, Gateway, Limits, Sender  # noqa: E402
from deploy.mcp import McpGateway  # noqa: E402
from deploy.middleware import ENDPOINTS, POSTED, SECRETS, BodyLimit, find_endpoint  # noqa: E402  # noqa: E402
from deploy.observability.heartbeats import beating  # noqa: E402
from deploy.observability.metrics import READS_REFUSED  # noqa: E402
from deploy.supervisor.cpu_affinity import keep_to_share, let_running_go_on  # noqa: E402
from deploy.wsgi import application as pages  # noqa: E402
from ingest.api import keys  # noqa: E402
from ingest.integrations.json_body import LARGEST_REQUEST  # noqa: E402

KEY_IN_THE_BODY = "/v2/"
"""PagerDuty's clients send their key so."""


def is_intake(environ: WSGIEnvironment) -> bool:
    path: str = environ["PATH_INFO"]
    return path.startswith(ENDPOINTS) or (path == POSTED and environ["REQUEST_METHOD"] == "POST")


def identify(environ: WSGIEnvironment) -> Sender:
    """Sender of a request, by key or session, with the largest body that is read from it at this address."""
    connections[DEFAULT_DB_ALIAS].close_if_unusable_or_obsolete()
    try:
        return _machine(environ) if is_intake(environ) else _person(environ)
    except (OperationalError, InterfaceError):
        return Sender("", 0)  # the application says that the database is away


def _machine(environ: WSGIEnvironment) -> Sender:
    path: str = environ["PATH_INFO"]
    key = keys.authenticate(environ.get("HTTP_AUTHORIZATION"))
    if key is None and (match := find_endpoint(path, environ["REQUEST_METHOD"])):
        key = next((keys.find(str(match.kwargs[name])) for name in SECRETS & match.kwargs.keys()), None)
    if key is not None:
        return Sender(f"key {key.name}", max(settings.TELEMETRY_MAX_BODY, settings.ALERT_MAX_BODY))
    return Sender("", LARGEST_REQUEST if path.startswith(KEY_IN_THE_BODY) else 0)


def _person(environ: WSGIEnvironment) -> Sender:
    if "HTTP_AUTHORIZATION" in environ:
        key = keys.authenticate(environ["HTTP_AUTHORIZATION"])
        return Sender("", 0) if key is None else Sender(f"key {key.name}", BodyLimit.MOST)
    with suppress(CookieError):
        cookies = SimpleCookie(environ.get("HTTP_COOKIE", ""))
        if settings.SESSION_COOKIE_NAME in cookies:
            store = import_module(settings.SESSION_ENGINE).SessionStore
            held = store(cookies[settings.SESSION_COOKIE_NAME].value).get(SESSION_KEY)
            if held and User.objects.filter(pk=held, is_active=True).exists():
                return Sender(f"user {held}", BodyLimit.MOST)
    return Sender("", SMALL)


def has_key(environ: WSGIEnvironment) -> bool:
    """Whether a request has a valid key, or the database that would say so is away: then the API says that."""
    connections[DEFAULT_DB_ALIAS].close_if_unusable_or_obsolete()
    try:
        return keys.authenticate(environ.get("HTTP_AUTHORIZATION")) is not None
    except (OperationalError, InterfaceError):
        return "HTTP_AUTHORIZATION" in environ


gateway = Gateway(
    pages,
    Limits(settings.WEB_THREADS, settings.WEB_MAX_READS, settings.BODY_TIMEOUT_SECONDS),
    is_intake,
    identify,
    READS_REFUSED.inc,
)
application = beating(McpGateway(gateway, has_key))


def prepare() -> None:
    """Set up this process before it serves: its cores, many open files, few garbage collections."""
    if settings.WEB_CPU_AFFINITY:
        keep_to_share(settings.HOME.run, settings.WEB_WORKERS)
    let_running_go_on()
    # Each connection is a file; the usual soft limit of 1024 is for programs that use select().
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # What is loaded by now stays until the end: no round has to walk through it. A request makes hundreds of objects
    # and leaves few circles, so rounds need not come every few requests.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
