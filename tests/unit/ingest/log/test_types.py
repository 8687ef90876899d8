import random
from datetime import UTC, datetime, timedelta
from uuid import RFC_4122

import pytest

from ingest.log.types import Head, Position, ordered_id

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def test_the_text_of_positions_sorts_as_the_positions_do() -> None:
    random.seed(1)
    positions = [
        Position(
            random.randrange(1, 20), random.randrange(10 ** random.randrange(1, 18)), random.randrange(10**9)
        )
        for _ in range(500)
    ]
    assert sorted(positions, key=str) == sorted(positions)


def test_a_position_is_read_back_from_its_text() -> None:
    position = Position(2, 10_000, 77)
    assert Position.parse(str(position)) == position


def test_the_text_of_every_position_has_one_width() -> None:
    assert {len(str(p)) for p in (Position.START, Position(65535, 2**64 - 1, 2**63 - 1))} == {36}


@pytest.mark.parametrize("text", ["", "7", "0" * 35, "0" * 37, "G" * 36, "0" * 35 + "\n", "٣" * 36])
def test_what_is_not_a_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a log position"):
        Position.parse(text)


def test_a_new_stream_stands_at_version_zero_without_a_hash() -> None:
    assert Head(0, b"") == Head.NEW


def test_ids_of_streams_are_in_the_order_of_their_beginnings() -> None:
    later = [NOON + timedelta(milliseconds=number) for number in range(1_000)]
    ids = [str(ordered_id(at)) for at in later]
    assert ids == sorted(ids)


def test_the_id_of_a_stream_is_a_uuid_of_version_7() -> None:
    for id_ in (ordered_id(NOON), ordered_id(NOON, "disk7")):
        assert (id_.version, id_.variant, id_.int >> 80) == (7, RFC_4122, NOON.timestamp() * 1000)


def test_ids_of_one_moment_differ() -> None:
    assert len({ordered_id(NOON) for _ in range(10_000)}) == 10_000


def test_a_name_and_a_moment_give_one_id() -> None:
    names = ["disk7", "disk8"]
    assert [ordered_id(NOON, name) for name in names] == [ordered_id(NOON, name) for name in names]
    assert len({ordered_id(NOON, name).int & (1 << 62) - 1 for name in names}) == 2
