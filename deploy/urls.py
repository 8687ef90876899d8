"""Every address, floor by floor."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec

from django.conf import settings
from django.core.exceptions import DisallowedHost, TooManyFieldsSent
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import Resolver404, URLPattern, URLResolver, include, path, re_path, resolve
from django.views.decorators.csrf import csrf_exempt
from django.views.defaults import server_error
from drf_spectacular.views import SpectacularAPIView

from deploy.configuration import ConfigurationReplayView
from frontend.times import COOKIE
from frontend.views.pages import show
from ingest.api.problem_details import ServiceUnavailableError, problem
from ingest.commands import database_is_away
from ingest.db import disk

_SECRET = re.compile("password|secret")
OF_PROGRAMS = ("/api/", "/v1/", "/v2/", "/integrations/", "/chat/slack/", "/chat/mattermost/", "/telephony/")
handler400 = "deploy.urls.bad_request"
handler500 = "deploy.urls.broken"


@csrf_exempt
def no_such_address(request: HttpRequest, key: str = "") -> HttpResponse:
    """Programs get no page of the console, and none of their keys back."""
    path = (request.path.replace(key, "KEY") if key else request.path)[:200]
    return problem(404, "Not Found", f"No page or endpoint at {path}.{_right_one(request.path_info)}")


def _right_one(path: str) -> str:
    bare = path.rstrip("/")
    try:
        there = bare != path and resolve(bare).url_name != "no_such_address"
    except Resolver404:
        there = False
    return " Without the slash at its end there is." if there else ""


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Page for a request that Django refuses before a view does."""
    why = "It cannot be read as a request."
    if isinstance(exception, DisallowedHost):
        why = "This host name is not allowed: add it to DOSSIER_ALLOWED_HOSTS."
    elif isinstance(exception, TooManyFieldsSent):
        why = f"It has more than {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS} parameters."
    if request.path_info.startswith(OF_PROGRAMS):
        return problem(400, "Bad Request", why)
    return HttpResponse(render_to_string("400.html", {"why": why}), status=400)


def broken(request: HttpRequest) -> HttpResponse:
    """Answer to a failure that no view, endpoint or middleware handled: a database that is away is temporary, not our
    error."""
    if database_is_away(sys.exception()):
        return _unavailable(request)
    return server_error(request)


def _unavailable(request: HttpRequest) -> HttpResponse:
    """A page for people, which asks again by itself or holds what was typed; a line for its scripts, who go on as they
    are; a problem for programs. Nothing here reads the database."""
    if request.path_info.startswith(OF_PROGRAMS):
        answer = problem(503, "Service Unavailable", str(ServiceUnavailableError(sys.exception()).detail))
    elif "text/html" not in request.headers.get("Accept", ""):
        answer = HttpResponse("the database does not answer", status=503, content_type="text/plain")
    else:
        sent = [(name, value) for name, values in request.POST.lists() for value in values]
        context = {
            "wait": ServiceUnavailableError.wait,
            "is_disk_full": disk.state() == "full",
            "zone": request.COOKIES.get(COOKIE, ""),
            "posted": request.method == "POST",
            # No page holds what is secret, or can hold a file.
            "sent": [] if request.FILES or any(_SECRET.search(name) for name, _ in sent) else sent,
        }
        answer = HttpResponse(render_to_string("503.html", context), status=503)
    answer["Retry-After"] = str(ServiceUnavailableError.wait)
    answer["Cache-Control"] = "no-store"
    return answer


def by_staff(request: HttpRequest, **_: str) -> HttpResponse:
    """Page in place of allauth's self-service, part of which is open to strangers: staff does it.

    Addresses here are typed by staff and never verified, so that none of them proves who somebody is; and whoever has
    no password signs in through the identity provider, which lets them in no longer once they have left.
    """
    reason = "Staff set passwords, and change addresses of accounts, under Settings, People"
    return show(request, "frontend/layout/forbidden.html", {"reason": reason}, status=403)


urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/configuration/replay", ConfigurationReplayView.as_view(), name="api-configuration-replay"),
    path("api/schema", SpectacularAPIView.as_view(), name="schema"),
    re_path(r"^accounts/(?:password/(?:reset|set)|email|confirm-email)(?:/|\Z)", by_staff),
    path("accounts/", include("allauth.urls")),
]
for prefix, module in (
    ("api/v1/", "ingest.api.urls"),
    ("", "ingest.api.root_urls"),
    ("", "incidents.api.root_urls"),
    ("api/v1/", "analyzers.api.urls"),
    ("api/v1/", "incidents.api.urls"),
    ("", "deploy.observability.health"),
    ("", "frontend.urls"),
):
    if find_spec(module):
        urlpatterns.append(path(prefix, include(module)))
urlpatterns += [
    re_path(r"^(?:api|v1|v2)(?:/|\Z)", no_such_address, name="no_such_address"),
    re_path(r"^integrations/(?:[a-z]+/)?(?P<key>.+)", no_such_address, name="no_such_address"),
]
