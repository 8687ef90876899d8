"""POST /integrations/cloudevents, also with /{key}: CloudEvents 1.0; OPTIONS: the webhook handshake. Thin."""

from __future__ import annotations

from functools import partial

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from ingest.api.alerts import Door, Refusal, counted, key_at, refused_as_problem, serve
from ingest.api.keys import Key
from ingest.doors import cloudevent_alerts, generic
from ingest.doors.alert import Parsed
from ingest.doors.cloudevents import Unsupported, events, handshake


@csrf_exempt
def cloudevents(request: HttpRequest, key: str = "") -> HttpResponse:
    """Events as alerts: structured, batched or binary."""
    if request.method == "OPTIONS":
        return HttpResponse(status=200, headers=handshake(request.headers))
    parse = partial(_parse, request)
    door = Door("cloudevents", ("POST",), parse, counted, refused_as_problem, overloaded=429)
    return serve(door, request, partial(key_at, request, key))


def _parse(request: HttpRequest, body: bytes, key: Key) -> Parsed:
    how = cloudevent_alerts.DEFAULT if key.mapping is None else generic.mapping(key.mapping)
    try:
        return cloudevent_alerts.alerts(events(body, request.headers), how)
    except Unsupported as error:
        raise Refusal(415, f"Nothing was stored: {error}.") from None
