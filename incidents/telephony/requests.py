"""Requests of a telephony provider: replies to SMS, pressed keys, reports of delivery; checked, and carried out once.

The signature of a request is its proof. It has no time in it, so that each request is good once, and only for messages
of the last day. What is refused is on the audit, once an hour for each reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction

from incidents import queries
from incidents.domain import telephony
from incidents.domain.telephony import ANSWERS, REPEAT, SmsReply, is_signed, read_reply, read_report
from incidents.notifications.answer_links import LASTS
from incidents.notifications.channels.twilio import keypress_url, reply_code
from incidents.notifications.models import (
    OVER,
    ContactMethod,
    Notification,
    NotificationDelivery,
    ProviderReceipt,
)
from incidents.notifications.results import record_receipt
from incidents.security.refusals import record_refusal
from incidents.telephony.commands import carry_out
from ingest.queries import now_utc

KIND: Final = "telephony_request"
"""Kind of refused requests on the audit."""
WRONG_CODES: Final = 5
"""Replies with a wrong code that a number may send within an hour; then no code of it is looked at."""
HELP: Final = "Reply with the digits of the message, such as 14821. Or open its link."


class TelephonyRefusedError(Exception):
    """The request does nothing: `status` for HTTP, and why as a sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """A form that was posted; `path` begins with a slash and has the query."""

    path: str
    form: Mapping[str, Sequence[str]]
    signature: str

    def get(self, name: str) -> str:
        values = self.form.get(name) or [""]
        return values[-1].replace("\0", "")


# Checks
# ----------------------------------------------------------------------------------------------------------
def _check(request: ProviderRequest) -> None:
    """Raises TelephonyRefusedError unless the provider sent it."""
    if not settings.TELEPHONY_IS_SET_UP:
        raise TelephonyRefusedError(404, "No SMS and voice provider is configured.")
    if not request.signature:
        raise _refused(403, "unsigned", "The request has no X-Twilio-Signature.")
    url = f"{settings.PUBLIC_URL}{request.path}"
    if not is_signed(settings.TWILIO_AUTH_TOKEN, url, request.form, request.signature):
        raise _refused(
            403,
            "forged",
            "The signature is not that of DOSSIER_TWILIO_AUTH_TOKEN for this address; compare DOSSIER_PUBLIC_URL.",
        )


def _refused(status: int, reason: str, why: str) -> TelephonyRefusedError:
    record_refusal(KIND, reason, reason, "system:telephony")
    return TelephonyRefusedError(status, why)


def _is_new(key: str) -> bool:
    try:
        with transaction.atomic():
            ProviderReceipt.objects.create(key=key[:150], at=now_utc())
    except IntegrityError:
        return False
    return True


def _check_new(key: str) -> None:
    """In the transaction of what the request does, so that one that failed may come again."""
    if not _is_new(key):
        raise _RepeatedError


class _RepeatedError(Exception):
    pass


def _repeated() -> TelephonyRefusedError:
    return _refused(409, "repeated", "This request was already received; each request is carried out once.")


# Reports
# ----------------------------------------------------------------------------------------------------------
def report(message: UUID, request: ProviderRequest) -> None:
    """Record what became of a message. Raises TelephonyRefusedError."""
    _check(request)
    found = read_report({name: request.get(name) for name in ("MessageStatus", "CallStatus", "ErrorCode")})
    _calls_of(message)
    if found is None:
        return
    status = request.get("MessageStatus") or request.get("CallStatus")
    try:
        with transaction.atomic():
            _check_new(f"status {message} {request.get('MessageSid') or request.get('CallSid')} {status}")
            record_receipt(message, found.why, found.delivered, now_utc())
    except _RepeatedError:
        raise _repeated() from None


def _calls_of(message: UUID) -> list[Notification]:
    """The calls that a message of the last day was for, by incident. Raises TelephonyRefusedError."""
    rows = NotificationDelivery.objects.filter(message=message).select_related("notification")
    calls = [one.notification for one in rows.order_by("place", "pk")]
    if not calls:
        raise _refused(404, "unknown", "There is no such message.")
    if max(call.made_at for call in calls) < now_utc() - LASTS:
        raise _refused(410, "expired", "This message is older than a day and can no longer be answered.")
    return calls


# Keys
# ----------------------------------------------------------------------------------------------------------
def press(message: UUID, turn: int, request: ProviderRequest) -> str:
    """TwiML after a key was pressed in a phone call. Raises TelephonyRefusedError."""
    _check(request)
    calls = _answerable(_calls_of(message))
    key = request.get("Digits")
    try:
        with transaction.atomic():
            _check_new(f"keypress {request.get('CallSid')} {turn}")
            if (verb := ANSWERS.get(key)) is not None:
                return telephony.spoken(carry_out(calls, verb, None, "pressed in a phone call"))
    except _RepeatedError:
        raise _repeated() from None
    if turn + 1 >= telephony.MOST_TURNS:
        return telephony.spoken("Goodbye.")
    unknown = "" if key == REPEAT else "That key has no function. "
    return telephony.spoken_menu(f"{unknown}{_titles(calls)}", keypress_url(str(message), turn + 1))


def _answerable(calls: Iterable[Notification]) -> list[Notification]:
    found = [call for call in calls if call.person is not None and call.about != OVER]
    active = get_user_model().objects.filter(username__in={call.person for call in found}, is_active=True)
    names = set(active.values_list("username", flat=True))
    if not [call for call in found if call.person in names]:
        raise _refused(410, "no active account", "No recipient of this message has an active account.")
    return [call for call in found if call.person in names]


def _titles(calls: Sequence[Notification]) -> str:
    views = [queries.get(str(call.incident)).incident for call in calls[:3]]
    more = f" and {len(calls) - 3} more" if len(calls) > 3 else ""
    return ". ".join(f"{one.severity} incident {one.number}, {one.title}" for one in views) + more


# Replies
# ----------------------------------------------------------------------------------------------------------
def reply(request: ProviderRequest) -> str:
    """TwiML that answers an SMS of a person. Raises TelephonyRefusedError."""
    _check(request)
    number, known = request.get("From"), read_reply(request.get("Body"))
    methods = _methods_of(number)
    if not methods:
        _refused(200, "unknown number", "")
        return telephony.reply_text("")  # a stranger learns nothing
    try:
        with transaction.atomic():
            _check_new(f"sms {request.get('MessageSid')}")
            if known is None:
                return telephony.reply_text(HELP)
            return telephony.reply_text(_answered(known, methods))
    except _RepeatedError:
        raise _repeated() from None


def _methods_of(number: str) -> list[ContactMethod]:
    """Those of active people with this number; addresses are encrypted, so that no query finds them."""
    rows = ContactMethod.objects.filter(kind="sms", user__is_active=True).select_related("user")
    return [row for row in rows if number and row.address == number]


def _answered(known: SmsReply, methods: Sequence[ContactMethod]) -> str:
    if not _may_guess(methods):
        _refused(200, "too many wrong codes", "")
        return "Too many wrong codes. Open the link of the message instead."
    for message, calls in _recent(methods).items():
        if reply_code(str(message)) == known.code:
            return carry_out(_answerable(calls), known.answer, known, "replied by SMS")
    _refused(200, "wrong code", "")
    _is_new(f"wrong {methods[0].pk} {now_utc().isoformat()}")
    return "This code is wrong or older than a day. " + HELP


def _may_guess(methods: Sequence[ContactMethod]) -> bool:
    hour = now_utc() - timedelta(hours=1)
    wrong = ProviderReceipt.objects.filter(key__startswith=f"wrong {methods[0].pk} ", at__gt=hour)
    return wrong.count() < WRONG_CODES


def _recent(methods: Sequence[ContactMethod]) -> dict[UUID, list[Notification]]:
    """Calls by message, of the last day; those first that were sent last."""
    rows = NotificationDelivery.objects.filter(
        method__in=methods,
        kind="sms",
        message__isnull=False,
        notification__made_at__gt=now_utc() - LASTS,
        notification__person__isnull=False,
    ).exclude(notification__about=OVER)
    found: dict[UUID, list[Notification]] = {}
    for one in rows.select_related("notification").order_by("-notification__made_at", "place"):
        if one.message is not None:
            found.setdefault(one.message, []).append(one.notification)
    return found
