"""Bodies of requests: undo Content-Encoding without ever holding more than the limit allows."""

from __future__ import annotations

import zlib

import zstandard

from ingest.telemetry.errors import BodyTooLargeError, InvalidBodyError

ENCODINGS = ("identity", "gzip", "zstd")
WINDOW = 2**26
"""Largest zstd window, bytes: what a frame may have us set aside before its first byte comes out."""
STEP = 1024
"""Bytes of zstd taken at a time. A block of four bytes can unfold to 128 KiB, so this bounds the overshoot to
32 MiB."""


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """The body without its encoding. Raises BodyTooLargeError above `limit` bytes, InvalidBodyError for a broken or
    cut one.

    Raises LookupError for an encoding that is not in ENCODINGS.
    """
    match encoding:
        case "" | "identity":
            if len(body) > limit:
                raise _too_large(limit)
            return body
        case "gzip" | "x-gzip":
            return _gunzip(body, limit)
        case "zstd":
            return _unzstd(body, limit)
    raise LookupError(encoding)


def _gunzip(body: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while body:
        stream = zlib.decompressobj(wbits=31)
        try:
            parts.append(stream.decompress(body, limit + 1 - size))
        except zlib.error as error:
            raise InvalidBodyError("not good gzip") from error
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        if not stream.eof:
            raise InvalidBodyError("the gzip body is cut short")
        body = stream.unused_data.lstrip(b"\0")  # a file of several members, or padded
    return b"".join(parts)


def _unzstd(body: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    size = place = 0
    stream = None
    while place < len(body):
        stream = stream or zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()
        step = body[place : place + STEP]
        place += len(step)
        try:
            parts.append(stream.decompress(step))
        except zstandard.ZstdError as error:
            raise InvalidBodyError("not good zstd") from error
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        if stream.eof:
            place -= len(stream.unused_data)  # the next frame
            stream = None
    if stream is not None:
        raise InvalidBodyError("the zstd body is cut short")
    return b"".join(parts)


def _too_large(limit: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"the body is larger than {limit} bytes after decompression")
