"""Addresses that a telephony provider sends to: replies to SMS, pressed keys, reports of delivery."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from incidents.api.incident.serializers import ProblemShape
from incidents.telephony import requests
from incidents.telephony.requests import ProviderRequest, TelephonyRefusedError
from ingest.api.problem_details import problem

FORM = {"application/x-www-form-urlencoded": OpenApiTypes.OBJECT}
REFUSED = {
    403: OpenApiResponse(ProblemShape, "Unsigned or forged."),
    404: OpenApiResponse(ProblemShape, "Message not found, or no provider configured."),
    409: OpenApiResponse(ProblemShape, "Duplicate, ignored."),
    410: OpenApiResponse(ProblemShape, "The message is older than a day, or its page has ended."),
    413: OpenApiResponse(ProblemShape, "Too large."),
}
TWIML = {
    (200, "text/xml"): OpenApiResponse(OpenApiTypes.STR, "TwiML with the reply or the text to read out.")
}
LARGEST = 64 * 1024
"""Bytes of a form."""


class ProviderAPI(APIView):
    """The signature of a request is its proof."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()

    def answered(self, request: Request, answer: Callable[[ProviderRequest], str | None]) -> HttpResponse:
        if int(request.headers.get("Content-Length") or 0) > LARGEST:
            return problem(413, "Payload Too Large", f"A request has at most {LARGEST} bytes.")
        raw = request._request
        form = {name: [str(value) for value in values] for name, values in raw.POST.lists()}
        signed = request.headers.get("X-Twilio-Signature", "")
        try:
            twiml = answer(ProviderRequest(raw.get_full_path(), form, signed))
        except TelephonyRefusedError as refused:
            return problem(refused.status, "Request refused", str(refused))
        if twiml is None:
            return HttpResponse(status=204)
        return HttpResponse(twiml, content_type="text/xml; charset=utf-8")


class ReplyView(ProviderAPI):
    @extend_schema(operation_id="telephony_reply", request=FORM, responses={**TWIML, **REFUSED})
    def post(self, request: Request) -> HttpResponse:
        """Reply by SMS: `1CODE` acknowledges, `2CODE` hands over, `3CODE` snoozes."""
        return self.answered(request, requests.reply)


class StatusView(ProviderAPI):
    @extend_schema(operation_id="telephony_status", request=FORM, responses={204: None, **REFUSED})
    def post(self, request: Request, message: UUID) -> HttpResponse:
        """Delivery report of an SMS or a phone call; after a failure the next contact method is used."""
        return self.answered(request, lambda sent: requests.report(message, sent))


class KeypressView(ProviderAPI):
    @extend_schema(operation_id="telephony_keypress", request=FORM, responses={**TWIML, **REFUSED})
    def post(self, request: Request, message: UUID, turn: int) -> HttpResponse:
        """Key pressed in a phone call: 1 acknowledges, 2 hands over, 3 snoozes, 4 repeats."""
        return self.answered(request, lambda sent: requests.press(message, turn, sent))
