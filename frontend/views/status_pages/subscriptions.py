"""Subscriptions to a status page by mail: requested on the page, confirmed and ended by links of mails."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from frontend.views.status_pages.bodies import BODIES
from incidents.security.refusals import record_refusal
from incidents.status_pages import mail
from incidents.status_pages.mail import CONFIRM, LEAVE, SubscriptionRefusedError

TEMPLATE = "frontend/status_pages/subscription.html"
NOT_VALID = {
    "title": "Link not valid",
    "problem": True,
    "text": "The link is incomplete, or older than a week. Subscribe on the status page again.",
}


@csrf_exempt  # the page is the same for all and has no token; without a confirmation nothing follows
@require_POST
def subscribe(request: HttpRequest, slug: str) -> HttpResponse:
    known = BODIES.page(slug)
    if known is None or not (known.public or request.user.is_authenticated):
        raise Http404("no such status page")
    try:
        mail.request(slug, request.POST.get("address", "").replace("\0", ""), timezone.now())
    except SubscriptionRefusedError as refused:
        context = {"title": "Not subscribed", "problem": True, "text": str(refused), "slug": slug}
        return _shown(request, context, refused.status)
    context = {
        "title": "Confirm the subscription",
        "text": "Unless the address is already subscribed, it receives a mail with a link, valid for a week.",
        "slug": slug,
    }
    return _shown(request, context)


@csrf_exempt  # the token in the address is the proof
@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Looking at it changes nothing: scanners of mail do."""
    found = mail.read_link(CONFIRM, token)
    if found is None:
        _refused(request, "confirmation")
        return _shown(request, NOT_VALID, 410)
    page, address = found
    if request.method != "POST":
        text = f"Send updates to {address}?"
        return _shown(request, {"title": "Subscribe", "text": text, "button": "Subscribe"})
    if not mail.confirm(page, address, timezone.now()):
        _refused(request, "confirmation", "subscription deleted")
        return _shown(request, NOT_VALID, 410)
    text = f"{address} gets a mail for each update."
    return _shown(request, {"title": "Subscribed", "text": text, "slug": page})


@csrf_exempt  # the token in the address is the proof; mail programs post here without a page (RFC 8058)
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    found = mail.read_link(LEAVE, token)
    if found is None:
        _refused(request, "end of a subscription")
        return _shown(request, {**NOT_VALID, "text": "The link is incomplete."}, 410)
    page, address = found
    if request.method != "POST":
        text = f"Send no more updates to {address}?"
        return _shown(request, {"title": "Unsubscribe", "text": text, "button": "Unsubscribe"})
    mail.unsubscribe(page, address)
    text = f"{address} was deleted and gets no more updates."
    return _shown(request, {"title": "Unsubscribed", "text": text})


def _refused(request: HttpRequest, link: str, reason: str = "link forged or expired") -> None:
    """Looking leaves no entry: scanners of mail shorten and change addresses."""
    if request.method == "POST":
        record_refusal(mail.KIND, link, reason, "system:status_pages")


def _shown(request: HttpRequest, context: dict[str, Any], status: int = 200) -> HttpResponse:
    response = render(request, TEMPLATE, context, status=status)
    patch_cache_control(response, no_store=True)
    response["Referrer-Policy"] = "no-referrer"  # the address is a key
    response["X-Robots-Tag"] = "noindex"
    return response
