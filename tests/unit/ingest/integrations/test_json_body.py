"""The reader of JSON bodies: what it takes, and what it says about the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.integrations.json_body import DEEPEST, read, read_object
from ingest.integrations.normalized import InvalidPayloadError

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(VALUES)
def test_a_value_is_read_as_the_standard_library_reads_it(value: Any) -> None:
    assert read(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"NaN", "is not JSON"),
        (b"[1e999]", "is not JSON"),
        (b"{} {}", "is not JSON"),
        (b'"\xff"', "is not JSON in UTF-8"),
        ('"x"'.encode("utf-16"), "is not JSON in UTF-8"),
        (b"[" * 100_000, "deeper|not JSON"),
        (b"[" * 500 + b"]" * 500, "deeper"),
        (b"[" * 100_000 + b"]" * 100_000, "deeper"),
        (b" " * (2**26 + 1), "at most 67108864 bytes"),
    ],
)
def test_a_body_that_is_no_json_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidPayloadError, match=reason):
        read(body)


def test_the_deepest_body_is_still_read() -> None:
    assert read(b"[" * DEEPEST + b"]" * DEEPEST)
    with pytest.raises(InvalidPayloadError, match="deeper"):
        read(b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1))


def test_of_a_key_given_twice_the_last_counts() -> None:
    assert read(b'{"a": 1, "a": 2}') == {"a": 2}


def test_a_byte_order_mark_is_no_reason_to_lose_an_alert() -> None:
    assert read(b"\xef\xbb\xbf{}") == {}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (rb'"cut \ud83d"', "cut \ufffd"),
        (rb'"\udc00\ud83d\ude00"', "\ufffd\U0001f600"),
        (rb'"\\ud83d \ud83d"', "\\ud83d \ufffd"),
    ],
)
def test_half_a_surrogate_pair_is_replaced(body: bytes, text: str) -> None:
    assert read(body) == text


def test_an_endpoint_that_wants_an_object_says_what_it_got() -> None:
    with pytest.raises(InvalidPayloadError, match="must be a JSON object, not a number"):
        read_object(b"7")
