"""Compressed bodies: undone whole or refused, and never larger than allowed."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ingest.api.admission import decompress
from ingest.telemetry.errors import BodyTooLargeError, InvalidBodyError

LIMIT = 1_000_000


def squeeze(body: bytes, encoding: str) -> bytes:
    return gzip.compress(body) if encoding == "gzip" else zstandard.ZstdCompressor().compress(body)


both = pytest.mark.parametrize("encoding", ["gzip", "zstd"])


@both
@given(body=st.binary(max_size=5000))
def test_what_was_compressed_comes_back(encoding: str, body: bytes) -> None:
    assert decompress(squeeze(body, encoding), encoding, LIMIT) == body


@both
def test_several_members_are_one_body(encoding: str) -> None:
    assert (
        decompress(squeeze(b"one", encoding) + squeeze(b"two" * 2000, encoding), encoding, LIMIT)
        == b"one" + b"two" * 2000
    )


@both
@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_cut_body_is_refused(encoding: str, cut: int) -> None:
    body = squeeze(bytes(range(256)) * 10, encoding)
    with pytest.raises(InvalidBodyError):
        decompress(body[:-cut], encoding, LIMIT)


@both
def test_what_is_not_compressed_is_refused(encoding: str) -> None:
    with pytest.raises(InvalidBodyError):
        decompress(b'{"time": 1}', encoding, LIMIT)


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "identity"])
def test_the_limit_holds_after_decompression(encoding: str) -> None:
    body = b"a" * (LIMIT + 1)
    with pytest.raises(BodyTooLargeError):
        decompress(body if encoding == "identity" else squeeze(body, encoding), encoding, LIMIT)
    assert len(decompress(squeeze(body[:-1], "gzip"), "gzip", LIMIT)) == LIMIT


@both
def test_a_bomb_is_not_unfolded(encoding: str) -> None:
    bomb = squeeze(bytes(100_000_000), encoding)
    tracemalloc.start()
    with pytest.raises(BodyTooLargeError):
        decompress(bomb, encoding, LIMIT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60_000_000


def test_a_zstd_window_without_measure_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    with pytest.raises(InvalidBodyError):
        decompress(compressor.compress(b"a" * 10) + compressor.flush(), "zstd", LIMIT)
