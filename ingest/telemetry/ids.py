"""Identifiers of things that happen once (traces, spans): 128 bits, written one way. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

_HEX = re.compile(r"[0-9A-Fa-f]{1,32}")
BYTES = 16


def canonical_id(text: str) -> str:
    """The one way to write an id: 16 hexadecimal digits where they are enough, else 32; nothing for zeros.

    Hexadecimal digits stand for themselves, whatever their case and leading zeros (W3C Trace Context: 16 digits
    for a span, 32 for a trace). Any other text becomes its BLAKE2b digest of 128 bits.
    """
    if _HEX.fullmatch(text):
        return _written(int(text, 16))
    return blake2b(text.encode(errors="surrogatepass"), digest_size=BYTES).hexdigest() if text else ""


def _written(number: int) -> str:
    if not number:
        return ""
    return f"{number:016x}" if number < 2**64 else f"{number:032x}"


def as_bytes(ids: Iterable[str]) -> NDArray[np.void]:
    """Canonical ids as 16 bytes each, shape (ids,)."""
    return np.frombuffer(b"".join(bytes.fromhex(one.rjust(2 * BYTES, "0")) for one in ids), f"V{BYTES}")


def as_texts(ids: NDArray[np.void]) -> tuple[str, ...]:
    """What `as_bytes` took."""
    packed = ids.tobytes()
    return tuple(
        _written(int.from_bytes(packed[place : place + BYTES])) for place in range(0, len(packed), BYTES)
    )
