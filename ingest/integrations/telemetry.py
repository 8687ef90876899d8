"""The telemetry door: a body of rows of one kind, in one of three formats. Pure."""

from __future__ import annotations

from collections.abc import Callable

from ingest.telemetry.decode.builder import NONE_KNOWN, KnownTexts, UnknownTextError
from ingest.telemetry.decode.columns import Rows
from ingest.telemetry.decode.json import decode_array, decode_ndjson
from ingest.telemetry.decode.validate import Bounds
from ingest.telemetry.kinds import Kind

Decode = Callable[[Kind, bytes, str, Bounds, KnownTexts], Rows]


def _decode_arrow(kind: Kind, body: bytes, region: str, bounds: Bounds, known: KnownTexts) -> Rows:
    from ingest.telemetry.decode.arrow import decode_stream  # loads pyarrow: only where somebody sends Arrow

    return decode_stream(kind, body, region, bounds, known)


FORMATS: dict[str, Decode] = {
    "application/x-ndjson": decode_ndjson,
    "application/json": decode_array,
    "application/vnd.apache.arrow.stream": _decode_arrow,
}
"""Media types, and what makes rows of a body. Each raises InvalidRowsError (the first bad rows), InvalidBodyError or
UnknownTextError."""


def decode(media_type: str, kind: Kind, body: bytes, region: str, bounds: Bounds, known: KnownTexts) -> Rows:
    """Rows of a body; `region` is that of rows that name none. Raises InvalidRowsError, InvalidBodyError.

    With `known`, columns of texts that are all in it come by their numbers.
    """
    try:
        return FORMATS[media_type](kind, body, region, bounds, known)
    except UnknownTextError:
        return FORMATS[media_type](kind, body, region, bounds, NONE_KNOWN)
