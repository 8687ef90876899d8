"""Notification settings of the reader: methods, rules, quiet hours, and recent messages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from frontend.time_input import parse_span
from frontend.views.pages import context_of, page, show, staff_only
from frontend.views.paging import listed
from incidents.domain.notifications.delivery import ACCOUNT, TITLES
from incidents.domain.notifications.push import read_subscription
from incidents.domain.values import SEVERITIES, CommandRefusedError, InvalidValueError
from incidents.notifications import contact_methods
from incidents.notifications.models import ContactMethod
from incidents.notifications.push_key import push_public_key
from incidents.notifications.queries import is_readable, recent_notifications, unreachable
from incidents.notifications.recipients import preferences, reachable
from incidents.security.refusals import record_refusal

SHOWN = 20
"""Messages that the page lists, the newest first."""
BLANK_RULES = 2
CHOICES = tuple((kind, f"{title[0].upper()}{title[1:]}") for kind, title in TITLES.items() if kind != "push")
"""Kinds that a form adds; push is added by the device itself."""


@page
@require_http_methods(["GET", "HEAD", "POST"])
def notifications(request: HttpRequest) -> HttpResponse:
    """The page; POST adds a contact method."""
    if request.method != "POST":
        return _listed(request)
    errors, typed = _added(request, _user(request))
    return _listed(request, errors, typed) if errors else _back()


def _added(request: HttpRequest, user: User | None) -> tuple[dict[str, str], dict[str, str]]:
    """Adds what was typed; the reason by field where it cannot be, and what was typed."""
    typed = {
        name: request.POST.get(name, "").strip() for name in ("name", "kind", "address", "secret", "most")
    }
    given: dict[str, Any] = {name: value for name, value in typed.items() if value}
    if "most" in given:
        given["most"] = (
            int(given["most"]) if given["most"].isascii() and given["most"].isdigit() else given["most"]
        )
    try:
        row = contact_methods.add_method(user, given, context_of(request))
    except InvalidValueError as error:
        return {error.field: error.reason}, typed
    except CommandRefusedError as error:
        return {"name": error.reason}, typed
    messages.success(request, f"{row.name} added. Send a test to check it.")
    return {}, typed


@page
@require_POST
def add_device(request: HttpRequest) -> HttpResponse:
    """Adds the browser that sends its subscription, and sends it a test."""
    name, subscription = request.POST.get("device", "").strip(), request.POST.get("subscription", "")
    try:
        row = contact_methods.add_device(_user(request), name, subscription, context_of(request))
    except InvalidValueError as error:
        return _listed(request, {"device": f"{error.field} {error.reason}"}, {"device": name})
    except CommandRefusedError as error:
        return _listed(request, {"device": error.reason}, {"device": name})
    _report_test(request, contact_methods.try_method(row))
    return _back()


@csrf_exempt
@require_POST
def renew_device(request: HttpRequest) -> HttpResponse:
    """The service worker of a device hands in the subscription that replaces an earlier one, and both are JSON. It has
    no token of a form: the earlier subscription, which no other page knows, is the proof."""
    if not request.user.is_authenticated:
        return JsonResponse({"text": "Not signed in."}, status=401)
    before, subscription = request.POST.get("before", ""), request.POST.get("subscription", "")
    try:
        row = contact_methods.renew_device(_user(request), before, subscription, context_of(request))
    except (InvalidValueError, CommandRefusedError) as error:
        record_refusal("push_device", str(request.user), "unknown subscription", "system:push")
        return JsonResponse({"text": str(error)}, status=403)
    contact_methods.try_method(row)
    return JsonResponse({"text": f"{row.name} has a new subscription."})


@page
@require_http_methods(["GET", "HEAD", "POST"])
def channels(request: HttpRequest) -> HttpResponse:
    """Channels shared by teams; POST adds one."""
    staff_only(request, "Only staff can change channels.")
    errors, typed = _added(request, None) if request.method == "POST" else ({}, {})
    if request.method == "POST" and not errors:
        return HttpResponseRedirect(reverse("channels"))
    rows = list(ContactMethod.objects.filter(user=None).order_by("name"))
    found = listed(request, rows, _method_name, lambda row: (row.name,))
    context = {
        "methods": _shown(found.rows),
        "list": found,
        "kinds": CHOICES,
        "errors": errors,
        "typed": typed,
    }
    status = 400 if errors else 200
    return show(request, "frontend/settings/channels.html", context, section="settings", status=status)


@page
@require_POST
def act_on_channel(request: HttpRequest, name: str, verb: str) -> HttpResponse:
    staff_only(request, "Only staff can change channels.")
    _act(request, ContactMethod.objects.filter(user=None, name=name).first(), verb)
    return HttpResponseRedirect(f"{reverse('channels')}?{urlencode({'show': name})}")


@page
@require_POST
def keep_rules(request: HttpRequest) -> HttpResponse:
    try:
        contact_methods.set_preferences(_user(request), _wishes(request), context_of(request))
    except InvalidValueError as error:
        return _listed(request, {"rules": f"{error.field}: {error.reason}"})
    messages.success(request, "Saved. Notifications already scheduled are unchanged.")
    return _back()


@page
@require_POST
def act_on_method(request: HttpRequest, name: str, verb: str) -> HttpResponse:
    user = _user(request)
    row = ContactMethod.objects.filter(user=user, name=name).select_related("user").first()
    if verb == "test" and name == ACCOUNT:
        _report_test(request, contact_methods.try_account(user))
    else:
        _act(request, row, verb)
    return _back()


def _act(request: HttpRequest, row: ContactMethod | None, verb: str) -> None:
    if row is None or verb not in ("test", "remove"):
        raise Http404("no such contact method or action")
    if verb == "test":
        _report_test(request, contact_methods.try_method(row))
        return
    try:
        contact_methods.remove_method(row, context_of(request))
        messages.success(request, f"{row.name} removed.")
    except CommandRefusedError as error:
        messages.error(request, f"{error.reason[:1].upper()}{error.reason[1:]}.")


def _shown(rows: Iterable[ContactMethod]) -> list[dict[str, Any]]:
    return [
        {
            "it": row,
            "unreadable": not is_readable(row),
            "device": _device(row),
            **contact_methods.method_as_json(row),
        }
        for row in rows
    ]


def _device(row: ContactMethod) -> str:
    """By which a browser knows its own subscription; the address of its push service is a secret."""
    if row.kind != "push" or not row.address:
        return ""
    return hashlib.sha256(read_subscription(row.address).endpoint.encode()).hexdigest()


def _method_name(row: ContactMethod) -> str:
    return f"{row.name} {row.get_kind_display()} {contact_methods.method_as_json(row)['address']}"


def _report_test(request: HttpRequest, tried: contact_methods.Tried) -> None:
    if tried.taken:
        messages.success(request, f"Test sent: {tried.why}.")
    else:
        messages.error(request, f"Test failed: {tried.why}.")


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def _back() -> HttpResponse:
    return HttpResponseRedirect(reverse("notifications"))


def _wishes(request: HttpRequest) -> Mapping[str, Any]:
    """The form: a rule a row, of which those without a method are left out. Raises InvalidValueError."""
    form = request.POST
    rules = []
    for place in range(_count(form.get("rows", ""))):
        if method := form.get(f"method-{place}", ""):
            rules.append(
                {
                    "method": method,
                    "delay": _seconds(f"rule {place + 1}", form.get(f"delay-{place}", "")),
                    "severities": form.getlist(f"severities-{place}"),
                    "urgent": {"urgent": True, "other": False}.get(form.get(f"urgent-{place}", "")),
                }
            )
    quiet = None
    if form.get("start") or form.get("end"):
        quiet = {name: form.get(name, "").strip() for name in ("zone", "start", "end")}
    bundle = _seconds("bundling", form.get("bundle", ""))
    return {"rules": rules, "quiet_hours": quiet, "bundle_seconds": bundle}


def _count(text: str) -> int:
    return min(int(text), 30) if text.isascii() and text.isdigit() and len(text) < 5 else 0


def _seconds(field: str, text: str) -> int:
    if not text.strip() or text.strip() == "0":
        return 0
    try:
        return int(parse_span(text).total_seconds())
    except ValueError as error:
        raise InvalidValueError(field, str(error)) from None


def _listed(
    request: HttpRequest, errors: dict[str, str] | None = None, typed: dict[str, str] | None = None
) -> HttpResponse:
    user = _user(request)
    rows = ContactMethod.objects.filter(user=user).order_by("name")
    known = preferences(User.objects.select_related("preferences").get(pk=user.pk))
    names = [method.name for method in reachable(user).person.methods]
    rules = [{**rule, "shown": _words(rule["delay"])} for rule in known.rules]
    context = {
        "methods": _shown(rows),
        "email": user.email,
        "unreachable": unreachable([user.username]).get(user.username),
        "names": names,
        "kinds": CHOICES,
        "push_key": push_public_key(),
        "rules": [*rules, *({"method": "", "severities": [], "shown": ""} for _ in range(BLANK_RULES))],
        "quiet": known.quiet or {},
        "bundle": _words(known.bundle_seconds),
        "severities": SEVERITIES,
        "sent": recent_notifications(user.username, SHOWN),
        "errors": errors or {},
        "typed": typed or {},
    }
    status = 400 if errors else 200
    return show(request, "frontend/settings/notifications.html", context, section="settings", status=status)


def _words(seconds: int) -> str:
    """As `parse_span` reads it."""
    parts = [(seconds // 3600, "h"), (seconds % 3600 // 60, "min"), (seconds % 60, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count)
