"""Sums as canonical bytes: the same sums give the same bytes, wherever and whenever they are written.

A header in JSON, then the arrays in the order of the header, little-endian, then zstd at a fixed level.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from ingest.telemetry.windows.reductions import Paths, Sums

FORMAT = "dossier sums 1"
LEVEL = 3
_TYPES = {"int64": "<i8", "float64": "<f8", "int32": "<i4"}
Json = Any
Array = NDArray[np.generic]


def dumps(sums: Mapping[str, Sums]) -> bytes:
    """The sums of a window, by reduction, as bytes."""
    arrays: list[Array] = []
    header = {
        "format": FORMAT,
        "sums": {
            name: {
                "rows": one.rows,
                "unmatched": one.unmatched,
                **({"later": one.later} if one.later else {}),
                "keys": {key: _key(value, arrays) for key, value in one.keys.items()},
                "values": {key: _array(value, arrays) for key, value in one.values.items()},
            }
            for name, one in sums.items()
        },
    }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    body = b"".join([len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in arrays)])
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=False, threads=0).compress(body)


def loads(body: bytes) -> dict[str, Sums]:
    """What `dumps` wrote; the arrays are read-only. Raises ValueError for anything else."""
    try:
        plain = zstandard.ZstdDecompressor().decompress(body)
        size = int.from_bytes(plain[:8], "little")
        header = json.loads(plain[8 : 8 + size])
        if header["format"] != FORMAT:
            raise ValueError("these are not sums that this version can read")
        arrays = _Arrays(memoryview(plain)[8 + size :])
        return {name: _sums(one, arrays) for name, one in header["sums"].items()}
    except (zstandard.ZstdError, KeyError, TypeError) as error:
        raise ValueError("these are not sums") from error


def _array(array: Array, arrays: list[Array]) -> Json:
    arrays.append(array.astype(_TYPES[array.dtype.name], copy=False))
    return {"type": array.dtype.name, "length": len(array)}


def _key(key: Paths | Sequence[str] | Array, arrays: list[Array]) -> Json:
    if isinstance(key, Paths):
        return {
            "names": key.names,
            "indptr": _array(key.indptr, arrays),
            "indices": _array(key.indices, arrays),
        }
    if isinstance(key, np.ndarray):
        return _array(key, arrays)
    return {"texts": list(key)}


class _Arrays:
    """Takes one array after the other off the bytes."""

    def __init__(self, left: memoryview) -> None:
        self.left = left

    def take(self, described: Json) -> Array:
        dtype = np.dtype(_TYPES[described["type"]])
        size = described["length"] * dtype.itemsize
        taken, self.left = self.left[:size], self.left[size:]
        return np.frombuffer(taken, dtype)


def _sums(described: Json, arrays: _Arrays) -> Sums:
    keys = {name: _read_key(key, arrays) for name, key in described["keys"].items()}
    values: dict[str, Any] = {name: arrays.take(value) for name, value in described["values"].items()}
    return Sums(keys, values, described["rows"], described["unmatched"], described.get("later", 0))


def _read_key(described: Json, arrays: _Arrays) -> Any:
    if "texts" in described:
        return tuple(described["texts"])
    if "names" in described:
        indptr = arrays.take(described["indptr"])
        return Paths(tuple(described["names"]), indptr, arrays.take(described["indices"]))  # type: ignore[arg-type]
    return arrays.take(described)
