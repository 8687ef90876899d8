"""POST /integrations/cloudevents, also with /{key}: CloudEvents 1.0; OPTIONS: the webhook handshake. Thin."""

from __future__ import annotations

from functools import partial

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from ingest.api.alerts import AlertEndpoint, RequestRefusedError, counted, key_at, refused_as_problem, serve
from ingest.api.keys import Key
from ingest.integrations.cloudevents import alerts
from ingest.integrations.cloudevents.parse import UnsupportedContentTypeError, events, handshake
from ingest.integrations.generic import apply
from ingest.integrations.normalized import Parsed


@csrf_exempt
def cloudevents(request: HttpRequest, key: str = "") -> HttpResponse:
    """Events as alerts: structured, batched or binary."""
    if request.method == "OPTIONS":
        return HttpResponse(status=200, headers=handshake(request.headers))
    parse = partial(_parse, request)
    endpoint = AlertEndpoint("cloudevents", ("POST",), parse, counted, refused_as_problem, overloaded=429)
    return serve(endpoint, request, partial(key_at, request, key))


def _parse(request: HttpRequest, body: bytes, key: Key) -> Parsed:
    how = alerts.DEFAULT if key.mapping is None else apply.mapping(key.mapping)
    try:
        return alerts.alerts(events(body, request.headers), how)
    except UnsupportedContentTypeError as error:
        raise RequestRefusedError(415, f"Nothing was stored: {error}.") from None
