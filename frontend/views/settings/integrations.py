"""Integrations: the keys of senders, made, rotated, revoked and tried by staff."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from frontend.senders import BY_SLUG, SENDERS, Sender
from frontend.time_input import parse_day, parse_span
from frontend.views.pages import context_of, page, show, staff_only, user_name
from frontend.views.paging import listed
from incidents.security.outbound import AddressRefusedError, UnreachableError, post
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.api import keys, test_alerts
from ingest.api.models import IntegrationKey, Rejection
from ingest.api.rejections import end_unread
from ingest.integrations import recognition
from ingest.integrations.generic import apply
from ingest.integrations.generic.apply import InvalidMappingError, Preview
from ingest.integrations.generic.presets import Preset
from ingest.integrations.normalized import InvalidPayloadError, Parsed
from ingest.queries import (
    Context,
    WithoutAlert,
    latest_deliveries,
    left_out_deliveries,
    unread_deliveries,
)

GENERIC = "generic"
"""The endpoint whose payloads a mapping reads."""
OVERLAP = "1 d"
WARNED_BEFORE = timedelta(days=14)
"""Time before a key expires from which its page warns."""
LISTED = timedelta(days=1)
"""Age of the oldest deliveries and refusals shown."""
SHOWN = 20
"""Deliveries that the page of one lists, the newest first."""
UNREAD = 5
"""Payloads that could not be read which it lists."""
LEFT_OUT = 50
"""Payloads left out by the mapping that are looked at; the page lists their reasons."""
LARGEST_SHOWN = 2**20
"""Bytes of a payload that the page looks into, every five seconds."""
EXAMPLE = '{\n  "title": "Disk d7 is slow",\n  "status": "firing"\n}'


@page
@require_http_methods(["GET", "HEAD", "POST"])
def integrations(request: HttpRequest) -> HttpResponse:
    """The list, for all; the form, and the new key shown once, for staff."""
    if request.method != "POST":
        return _listed(request)
    staff_only(request)
    errors, name = {}, request.POST.get("name", "").strip()
    sender = BY_SLUG.get(request.POST.get("sender", ""))
    if sender is None:
        errors["sender"] = "choose a source"
    if not 1 <= len(name) <= 100 or not name.isprintable():
        errors["name"] = "must be one line of 1 to 100 characters"
    expires_at = None
    try:
        expires_at = _expiry(request.POST.get("expires", ""))
    except ValueError as error:
        errors["expires"] = str(error)
    if errors or sender is None:
        return _listed(request, errors=errors)
    try:
        secret = make_key(sender, name, expires_at, context_of(request))
    except keys.KeyNameTakenError:
        return _listed(request, errors={"name": "is taken (revoked integrations keep their names)"})
    return _listed(request, made=(name, secret, [sender]))


def make_key(sender: Sender, name: str, expires_at: datetime | None, context: Context) -> str:
    """A key that does what this sender needs and no more. Raises KeyNameTakenError."""
    scopes = [sender.scope, *(["alerts"] if sender.slug == "otlp" else [])]
    endpoints = [sender.endpoint] if sender.endpoint and sender.scope == "alerts" else []
    return keys.create(
        name, scopes, mapping=sender.mapping, endpoints=endpoints, expires_at=expires_at, context=context
    )


@page
@require_safe
def integration(request: HttpRequest, pk: int) -> HttpResponse:
    """One of them: what it sent and what it was refused lately, and what to paste."""
    row, now = _row(pk), timezone.now()
    one = _integration_context(row, refusals_of([row.name]), staff=False)
    context = {
        "it": row,
        "one": one,
        "deliveries": latest_deliveries(row.name, now - LISTED, SHOWN) if row.last_used_at else [],
        "unread": _unread(row) if row.last_used_at else [],
        "left_out": _left_out(row) if row.last_used_at else [],
        "pastes": [(sender, sender.configured(settings.PUBLIC_URL)) for sender in one["senders"]],
    }
    return show(request, "frontend/settings/integration.html", context, section="settings")


def _unread(row: IntegrationKey) -> list[dict[str, Any]]:
    """Payloads that gave no alert: the probable sender, and whether the present mapping reads them."""
    return [
        {"it": one, "sender": recognition.recognised(_payload(one)), "readable": bool(_read_again(row, one))}
        for one in unread_deliveries(row.name, timezone.now() - LISTED, UNREAD)
    ]


def _left_out(row: IntegrationKey) -> list[dict[str, Any]]:
    """Payloads left out by the mapping: by reason the latest and the number; subscriptions to confirm each alone."""
    found: dict[str, dict[str, Any]] = {}
    for one in left_out_deliveries(row.name, timezone.now() - LISTED, LEFT_OUT):
        payload = _payload(one)
        confirm = recognition.confirmation(payload)
        group = found.setdefault(
            confirm or one.why,
            {"it": one, "sender": recognition.recognised(payload), "confirm": confirm, "times": 0},
        )
        group["times"] += 1
    return list(found.values())


def _payload(one: WithoutAlert) -> Any:
    """The value of a payload; None for one that cannot be read, or is too large to be looked into."""
    if len(one.payload) > LARGEST_SHOWN:
        return None
    try:
        return apply.payload_of(one.payload, one.content_type)
    except InvalidPayloadError:
        return None


def _read_again(row: IntegrationKey, one: WithoutAlert) -> Parsed | None:
    """The alerts of a stored payload by the mapping of now; None where it gives none, or refuses a part."""
    payload = _payload(one)
    try:
        how = None if row.mapping is None else apply.mapping(row.mapping)
        parsed = recognition.apply(how, payload).parsed
    except InvalidPayloadError:
        return None
    return parsed if parsed.alerts and not parsed.refused else None


def _unread_of(row: IntegrationKey, receipt: str) -> WithoutAlert:
    since = timezone.now() - LISTED
    listed = [*unread_deliveries(row.name, since, UNREAD), *left_out_deliveries(row.name, since, LEFT_OUT)]
    for one in listed:
        if one.receipt == receipt:
            return one
    raise Http404("no such payload")


def _taken_again(request: HttpRequest, row: IntegrationKey) -> HttpResponse:
    """Take a stored payload through the mapping of now, as if its sender had sent it again."""
    one = _unread_of(row, request.POST.get("receipt", ""))
    parsed = _read_again(row, one)
    if parsed is None:
        messages.error(request, "Not processed: the mapping produces no alert from this payload.")
        return HttpResponseRedirect(reverse("integration", args=[row.pk]))
    taken = receive(parsed, Delivery(row.name, GENERIC, one.content_type, one.payload))
    messages.success(request, "Processed. The incident opens within seconds.")
    return HttpResponseRedirect(reverse("receipt", args=[taken.receipt]))


def _confirmed(request: HttpRequest, row: IntegrationKey) -> HttpResponse:
    """Visit the address with which Amazon SNS confirms a subscription, through the guard of all outbound HTTP."""
    one = _unread_of(row, request.POST.get("receipt", ""))
    address = recognition.confirmation(_payload(one))
    if address is None:
        raise Http404("nothing to confirm")
    try:
        reply = post(address, b"", method="GET")
    except (AddressRefusedError, UnreachableError) as error:
        messages.error(request, f"Not confirmed: {error}.")
    else:
        if reply.taken:
            messages.success(request, "Subscription confirmed. Amazon SNS now sends its notifications here.")
        else:
            messages.error(request, f"Not confirmed: Amazon SNS answered {reply.status}.")
    return HttpResponseRedirect(reverse("integration", args=[row.pk]))


@page
@require_safe
def received(request: HttpRequest) -> HttpResponse:
    """Changing part of the list: last use and last refusal of each key."""
    rows = list(IntegrationKey.objects.filter(revoked_at=None))
    found = refusals_of([row.name for row in rows])
    entries = [{"it": row, "refusals": found.get(row.name, [])} for row in rows]
    return show(request, "frontend/settings/integrations_received.html", {"integrations": entries})


def refusals_of(names: Iterable[str]) -> dict[str, list[Rejection]]:
    """Refusals of keys within LISTED, by name, the latest first."""
    found: dict[str, list[Rejection]] = {}
    rows = Rejection.objects.filter(integration__in=list(names), at__gte=timezone.now() - LISTED)
    for row in rows.order_by("-at"):
        found.setdefault(row.integration, []).append(row)
    return found


def _integration_context(
    row: IntegrationKey, refusals: dict[str, list[Rejection]], *, staff: bool
) -> dict[str, Any]:
    return {
        "it": row,
        "senders": _senders(row),
        "endpoints": _endpoints(row),
        "mapped": _mapped(row),
        "refusals": refusals.get(row.name, []),
        # An address is as good as a key for sending mail.
        "mail": keys.mail_address(row) if staff else None,
    }


def _listed(
    request: HttpRequest,
    errors: dict[str, str] | None = None,
    made: tuple[str, str, list[Sender]] | None = None,
) -> HttpResponse:
    """A key that was made is in the answer to this request and nowhere else; pages are never stored."""
    rows = list(IntegrationKey.objects.all())
    good = [row for row in rows if not row.revoked_at]
    page_of = listed(
        request,
        good,
        lambda row: f"{row.name} {' '.join(row.scopes)} {row.region}",
        lambda row: (row.name,),
        reverse("integrations"),
    )
    found, staff = refusals_of([row.name for row in page_of.rows]), getattr(request.user, "is_staff", False)
    context: dict[str, Any] = {
        "integrations": [_integration_context(row, found, staff=staff) for row in page_of.rows],
        "list": page_of,
        "revoked": [row for row in rows if row.revoked_at],
        "senders": SENDERS,
        "errors": errors or {},
        "typed": request.POST if errors else {},
        "overlap": OVERLAP,
        "now": timezone.now(),
        "soon": timezone.now() + WARNED_BEFORE,
    }
    if made is not None:
        name, secret, senders = made
        context["made"] = {
            "name": name,
            "secret": secret,
            "senders": [(one, one.configured(settings.PUBLIC_URL, secret)) for one in senders],
        }
    status = 400 if errors else 200
    return show(request, "frontend/settings/integrations.html", context, section="settings", status=status)


def _expiry(text: str) -> datetime | None:
    """The end of a day by the reader's clock, from a form's field for dates; None where it is empty."""
    if not text.strip():
        return None
    try:
        end = parse_day(text)[1]
    except (ValueError, OverflowError):
        raise ValueError("must be a date") from None
    if end <= timezone.now():
        raise ValueError("must be in the future")
    return end


def _senders(row: IntegrationKey) -> list[Sender]:
    """The senders that a key is for: of a mapping that comes with Dossier its own, else by endpoint and scope."""
    own = [one for one in SENDERS if one.mapping is not None and one.mapping == row.mapping]
    return own or [
        one
        for one in SENDERS
        if one.mapping is None
        and (one.scope in row.scopes or "admin" in row.scopes)
        and (not row.endpoints or one.endpoint in row.endpoints)
    ]


def _endpoints(row: IntegrationKey) -> list[str]:
    """The endpoints that a test alert can go through: not those whose payloads a mapping of its own reads."""
    if not {"alerts", "admin"} & set(row.scopes):
        return []
    return [
        endpoint
        for endpoint in test_alerts.ENDPOINTS
        if (not row.endpoints or endpoint in row.endpoints)
        and not (endpoint in test_alerts.READ_BY_MAPPINGS and row.mapping)
        and (endpoint != "mail" or settings.INBOUND_EMAIL_PORT)
    ]


def _mapped(row: IntegrationKey) -> bool:
    """Whether a mapping can play a part in what it sends."""
    if not {"alerts", "admin"} & set(row.scopes):
        return False
    return not row.endpoints or bool({"generic", "cloudevents", "mail"} & set(row.endpoints))


def _row(pk: int) -> IntegrationKey:
    row = IntegrationKey.objects.filter(pk=pk, revoked_at=None).first()
    if row is None:
        raise Http404("no such integration")
    return row


@page
@require_POST
def act(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    """Rotate, revoke or try one integration; confirm a subscription; read a stored payload again."""
    staff_only(request)
    row = _row(pk)
    if verb == "rotate":
        try:
            overlap = parse_span(request.POST.get("overlap", OVERLAP))
        except ValueError as error:
            messages.error(request, f"Not rotated: the overlap {error}.")
            return HttpResponseRedirect(reverse("integrations"))
        return _rotated(request, row, overlap)
    if verb == "revoke":
        keys.revoke(row.name, context_of(request))
        messages.success(request, f"Revoked {row.name}. Its requests are rejected within seconds.")
        return HttpResponseRedirect(reverse("integrations"))
    if verb == "confirm":
        return _confirmed(request, row)
    if verb == "reread":
        return _taken_again(request, row)
    endpoint = request.POST.get("endpoint", "")
    if verb != "test" or endpoint not in _endpoints(row):
        raise Http404(verb)
    taken = test_alerts.send_sample(row.name, endpoint, user_name(request))
    messages.success(request, "Sent. The incident opens within seconds and resolves in five minutes.")
    return HttpResponseRedirect(reverse("receipt", args=[taken.receipt]))


def _rotated(request: HttpRequest, row: IntegrationKey, overlap: timedelta) -> HttpResponse:
    secret = keys.rotate(row.name, overlap, context_of(request))
    if secret is None:
        raise Http404("no such integration")
    return _listed(request, made=(row.name, secret, _senders(row)))


def _proposal(one: WithoutAlert) -> tuple[str, str, bool]:
    """A mapping for a payload that gave no alert, the payload as text, and whether it is a form."""
    payload, is_form = _payload(one), one.content_type == apply.FORM
    text = one.payload.decode(errors="replace")
    if not is_form and payload is not None:
        text = json.dumps(payload, indent=2, ensure_ascii=False)
    return json.dumps(recognition.proposed(payload), indent=2, ensure_ascii=False), text, is_form


# The mapping of the generic endpoint
# ----------------------------------------------------------------------------------------------------------
@page
@require_http_methods(["GET", "HEAD", "POST"])
def mapping(request: HttpRequest, pk: int) -> HttpResponse:
    """Try a mapping on a payload: what alert it makes, and why; then keep it."""
    staff_only(request)
    row = _row(pk)
    stored = "" if row.mapping is None else json.dumps(row.mapping, indent=2)
    text, payload = request.POST.get("mapping", stored), request.POST.get("payload", EXAMPLE)
    is_form = request.POST.get("form") == "on"
    errors: dict[str, str] = {}
    preview: Preview | None = None
    sender: Preset | None = None
    if request.method != "POST" and (receipt := request.GET.get("receipt")):
        text, payload, is_form = _proposal(_unread_of(row, receipt))
    if request.method == "POST" or request.GET.get("receipt"):
        try:
            parsed = json.loads(text) if text.strip() else None
            how = None if parsed is None else apply.mapping(parsed)
            if "save" in request.POST:
                return _saved(request, row, parsed)
            value = apply.payload_of(
                payload.encode(errors="replace"), apply.FORM if is_form else "application/json"
            )
            sender = recognition.recognised(value) if how is None else None
            preview = recognition.apply(how, value)
        except InvalidPayloadError as error:
            errors["payload"] = str(error)
        except InvalidMappingError as error:
            errors["mapping"] = str(error)
        except (ValueError, RecursionError) as error:
            errors["mapping"] = f"is not valid JSON: {error}"
    context = {
        "it": row,
        "text": text,
        "payload": payload,
        "form": is_form,
        "errors": errors,
        "sender": sender,
        "items": [] if preview is None else preview.items[:20],
        "more": 0 if preview is None else max(0, len(preview.items) - 20),
    }
    status = 400 if errors else 200
    return show(request, "frontend/settings/mapping.html", context, section="settings", status=status)


def _saved(request: HttpRequest, row: IntegrationKey, value: Any) -> HttpResponse:
    """Store the mapping; what it now reads of the payloads without an alert is offered on the integration's page."""
    keys.set_mapping(row.name, value, context_of(request))
    end_unread(row.name, GENERIC)
    messages.success(request, f"Mapping saved. New payloads of {row.name} use it.")
    return HttpResponseRedirect(reverse("integration", args=[row.pk]))
