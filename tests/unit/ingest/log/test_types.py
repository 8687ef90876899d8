import random

import pytest

from ingest.log.types import Head, Position


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
