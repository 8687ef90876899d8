"""Identifiers of things that happen once (traces, spans): 128 bits, written one way. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

_HEX = re.compile(r"[0-9A-Fa-f]{1,32}")
_ALL_LOWER = re.compile(r"[0-9a-f]*")
BYTES = 16
_ZEROS = "0" * BYTES


def canonical_id(text: str) -> str:
    """The one way to write an id: 16 hexadecimal digits where they are enough, else 32; nothing for zeros.

    Hexadecimal digits stand for themselves, whatever their case and leading zeros (W3C Trace Context: 16 digits
    for a span, 32 for a trace). Any other text becomes its BLAKE2b digest of 128 bits.
    """
    if _HEX.fullmatch(text):
        return _written(int(text, 16))
    return blake2b(text.encode(errors="surrogatepass"), digest_size=BYTES).hexdigest() if text else ""


def canonical_ids(texts: Sequence[str]) -> list[str]:
    """`canonical_id` of each; quick where nearly all are written so already, as senders of spans do."""
    if set(map(len, texts)) <= {0, BYTES, 2 * BYTES} and _ALL_LOWER.fullmatch("".join(texts)):
        return [canonical_id(text) if text.startswith(_ZEROS) else text for text in texts]
    return list(map(canonical_id, texts))


def _written(number: int) -> str:
    if not number:
        return ""
    return f"{number:016x}" if number < 2**64 else f"{number:032x}"


def as_bytes(ids: Iterable[str]) -> NDArray[np.void]:
    """Canonical ids as 16 bytes each, shape (ids,)."""
    digits = "".join(one.rjust(2 * BYTES, "0") for one in ids)
    return np.frombuffer(bytes.fromhex(digits), f"V{BYTES}")


def as_texts(ids: NDArray[np.void]) -> tuple[str, ...]:
    """What `as_bytes` took."""
    digits = ids.tobytes().hex()
    wide = (digits[place : place + 2 * BYTES] for place in range(0, len(digits), 2 * BYTES))
    return tuple(canonical_id(one) if one.startswith(_ZEROS) else one for one in wide)
