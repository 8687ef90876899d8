"""Parts of every page: who may see it, how it is rendered, the page for a wrong address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control

from frontend import times
from incidents.commands import ExpectedContext, InvalidValueError, seen_from
from incidents.domain.permissions import ForbiddenError
from incidents.domain.values import parse_rfc3339
from incidents.incident.view import moment
from incidents.queries import IncidentNotFoundError
from ingest.queries import Context, Position, watermark

P = ParamSpec("P")


def page(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """For people who are signed in. No such incident: 404. A parameter that makes no sense: 400."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        # Before anything is read: events from here on are sent to the page once it listens.
        request.log_position = str(watermark()) if request.method == "GET" else ""  # type: ignore[attr-defined]
        with times.read_in(times.zone_called(request.COOKIES.get(times.COOKIE))):
            return answered(request, *args, **kwargs)

    def answered(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except IncidentNotFoundError as error:
            raise Http404(str(error)) from error
        except ForbiddenError as error:
            return show(request, "frontend/layout/forbidden.html", {"reason": error.reason}, status=403)
        except InvalidValueError as error:
            return show(request, "frontend/layout/invalid.html", {"error": error}, status=400)
        except ValueError:
            if not _holds_nul(request):
                raise
            # No text of the database can hold it, which a view that looks for one hears from the driver.
            refusal = InvalidValueError("the request", "must not contain a NUL character")
            return show(request, "frontend/layout/invalid.html", {"error": refusal}, status=400)

    return login_required(guarded)  # type: ignore[return-value]


def _holds_nul(request: HttpRequest) -> bool:
    typed = [value for form in (request.GET, request.POST) for _, values in form.lists() for value in values]
    return any("\0" in str(text) for text in (request.path, *typed))


def show(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    section: str = "",
    watch: str = "",
    status: int = 200,
) -> HttpResponse:
    """Render a page. `watch` is what it follows live: `incidents`, `runs` (or both, apart by a space), or the
    id of one incident or run."""
    frame: dict[str, Any] = {"section": section, "watch": watch}
    if watch:
        frame["position"] = getattr(request, "log_position", "")
    with times.shown_at(_past_moment(request, (context or {}).get("as_of"))):
        response = render(request, template, {**frame, **(context or {})}, status=status)
    patch_cache_control(response, no_store=True)
    return response


def _past_moment(request: HttpRequest, as_of: object) -> datetime | None:
    """The time that a page about the past shows: the one in its address, else that of its log position."""
    if not isinstance(as_of, Position):
        return None
    try:
        return parse_rfc3339(request.GET.get("as_of", "").replace(" ", "+"))
    except (ValueError, OverflowError):
        return moment(as_of)


def staff_only(request: HttpRequest, why: str = "") -> None:
    """Raises PermissionDenied, whose page says `why`, for everybody else."""
    if not getattr(request.user, "is_staff", False):
        raise PermissionDenied(why)


def user_name(request: HttpRequest) -> str:
    assert isinstance(request.user, AbstractBaseUser)
    return request.user.get_username()


def context_of(request: HttpRequest) -> Context:
    """Actor of the events that follow, and the version of the incident on their page."""
    seen = seen_from("seen", request.POST.get("seen", ""))
    return ExpectedContext(f"user:{user_name(request)}", trace=getattr(request, "trace", None), seen=seen)


def typed_in(request: HttpRequest) -> dict[str, str]:
    """The fields of a form that was sent, the last of each name, without what no text can hold."""
    return {name: str(value).replace("\0", "") for name, value in request.POST.items()}
