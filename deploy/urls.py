"""Every address, floor by floor."""

from __future__ import annotations

from importlib.util import find_spec

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.views import SpectacularAPIView

from frontend.views.pages import show
from ingest.api.problems import problem


@csrf_exempt
def no_such_address(request: HttpRequest) -> HttpResponse:
    """Programs get no page of the console."""
    return problem(404, "Not Found", f"There is nothing at {request.path[:200]}.")


def by_staff(request: HttpRequest, **_: str) -> HttpResponse:
    """What allauth would let people do to their accounts by themselves, and some of it strangers.

    Addresses here are typed by staff and never verified, so that none of them proves who somebody is; and whoever has
    no password signs in through the identity provider, which lets them in no longer once they have left.
    """
    reason = "Staff set passwords, and change addresses of accounts, under Settings, People"
    return show(request, "frontend/forbidden.html", {"reason": reason}, status=403)


urlpatterns: list[URLPattern | URLResolver] = [
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
    ("", "deploy.health"),
    ("", "frontend.urls"),
):
    if find_spec(module):
        urlpatterns.append(path(prefix, include(module)))
urlpatterns.append(re_path(r"^api(?:/|\Z)", no_such_address, name="no_such_address"))
