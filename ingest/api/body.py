"""The body of a request, as sent, and never more of it than is taken."""

from __future__ import annotations

from django.http import HttpRequest

from ingest.telemetry.errors import BodyTooLargeError, InvalidBodyError


def read_body(request: HttpRequest, limit: int) -> bytes:
    """The body as sent. Raises BodyTooLargeError without reading on, InvalidBodyError when the sender went away."""
    # Without a length the body comes in chunks; Django would take that for no body at all.
    length = request.META.get("CONTENT_LENGTH") or ""
    chunked = not length and "wsgi.input" in request.META
    if length.isdecimal() and int(length) > limit:
        raise BodyTooLargeError(f"the body is larger than {limit} bytes")
    try:
        body: bytes = (request.META["wsgi.input"] if chunked else request).read(limit + 1)
    except OSError as error:
        raise InvalidBodyError("the body ended early") from error
    if len(body) > limit:
        raise BodyTooLargeError(f"the body is larger than {limit} bytes")
    return body
