import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.log import types
from ingest.log.types import Context, UnrecordableEventError

WHEN = "2026-01-02T03:04:05.000006+00:00"
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


class Level(StrEnum):
    HIGH = "high"


@given(st.dictionaries(TEXTS, JSON, max_size=5))
def test_a_body_is_read_back_from_its_text(body: dict[str, Any]) -> None:
    text, kept = types.record_body(body)
    assert types.read_body(text) == kept == json.loads(text) == body


@given(st.dictionaries(TEXTS, JSON, max_size=5))
def test_the_order_of_keys_does_not_change_the_text(body: dict[str, Any]) -> None:
    assert types.record_body(dict(reversed(body.items()))) == types.record_body(body)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        "a\0b",
        {"a\0": 1},
        ["\0"],
        {1: 2, "1": 3},
        b"bytes",
        datetime.now(UTC),
        Decimal("1.5"),
        {1, 2},
        msgspec.Raw(b"[1, 2]"),
        Context("user:alice"),
        "\ud800",
        DEEP,
    ],
)
def test_what_cannot_be_kept_exactly_is_refused(value: object) -> None:
    with pytest.raises(UnrecordableEventError):
        types.record_body({"value": value})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ((1, 2), [1, 2]),
        ({1: 2}, {"1": 2}),
        (Level.HIGH, "high"),
        (10**30, 10**30),
        (1e22, 1e22),
        ([True, 1, 1.0, None], [True, 1, 1.0, None]),
    ],
)
def test_what_json_has_other_words_for_is_kept_in_those(given: object, kept: object) -> None:
    text, body = types.record_body({"value": given})
    assert types.read_body(text) == body == json.loads(text) == {"value": kept}
    assert json.dumps(body) == json.dumps({"value": kept})  # 1 and true are equal, but not the same
    assert types.record_body({"value": kept}) == (text, body)


def test_a_backslash_before_u0000_is_not_a_nul() -> None:
    assert types.record_body({"path": "c:\\u0000"})[0] == '{"path":"c:\\\\u0000"}'


def _hash(**changes: Any) -> bytes:
    fields = {
        "previous": b"", "stream": "incident/1", "version": 1, "type_": "incident.opened", "schema": 1,
        "body": "{}", "actor": "user:alice", "cause": None, "trace": None,
        "occurred_at": WHEN, "recorded_at": WHEN,
    }  # fmt: skip
    return types.chain(**{**fields, **changes})


@pytest.mark.parametrize(
    "change",
    [
        {"previous": b"\1" * 32}, {"stream": "incident/2"}, {"version": 2}, {"type_": "incident.closed"},
        {"schema": 2}, {"body": '{"a":1}'}, {"actor": "user:bob"}, {"cause": "run/1@1"}, {"trace": "t"},
        {"occurred_at": WHEN.replace("6", "7")}, {"recorded_at": WHEN.replace("6", "7")},
    ],
)  # fmt: skip
def test_the_hash_depends_on_every_field(change: dict[str, Any]) -> None:
    assert _hash(**change) != _hash()


def test_the_hash_is_the_documented_one() -> None:
    fields = f"incident/1\0001\0incident.opened\0001\0user:alice\0\0\0{WHEN}\0{WHEN}\0{{}}"
    assert _hash() == sha256(fields.encode()).digest()


@pytest.mark.parametrize("text", ["\ud800", "nul\0", "\udfff tail"])
def test_lone_surrogates_and_nul_are_refused_in_any_field(text: str) -> None:
    with pytest.raises(UnrecordableEventError, match="incident/1@1"):
        _hash(actor=text)


def test_a_time_is_written_in_utc_to_the_microsecond() -> None:
    moment = datetime(2026, 1, 2, 5, 4, 5, 6, tzinfo=timezone(timedelta(hours=2)))
    assert types.time_text(moment) == WHEN


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(UnrecordableEventError, match="without a zone"):
        types.time_text(datetime(2026, 1, 2))  # noqa: DTZ001
