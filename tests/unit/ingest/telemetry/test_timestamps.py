"""Times are read the same, all at once or one by one."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.telemetry.decode.builder import MANY, times
from ingest.telemetry.decode.columns import microseconds

moments = st.datetimes(timezones=st.just(UTC))
LEAP_DAY = datetime(2024, 2, 29, 23, 59, 59, 999_999, UTC)


@given(st.lists(moments, min_size=1, max_size=9), st.sampled_from([0, 1, 3, 6]))
def test_texts_of_one_form_are_read_all_at_once(some: list[datetime], digits: int) -> None:
    def text(moment: datetime) -> str:
        fraction = f".{moment.microsecond:06}"[: digits + 1] if digits else ""
        return f"{moment.year:04}{moment:-%m-%dT%H:%M:%S}{fraction}Z"

    texts = [text(moment) for moment in some]
    one_by_one = times(texts).tolist()
    assert one_by_one == [microseconds(datetime.fromisoformat(one)) for one in texts]
    assert times(texts * MANY).tolist() == one_by_one * MANY


@given(st.lists(moments, min_size=1, max_size=9))
def test_a_mixture_of_forms_is_read(some: list[datetime]) -> None:
    texts = [moment.isoformat() for moment in some]
    assert times([*texts, 1000]).tolist() == [*map(microseconds, some), 1]


@pytest.mark.parametrize(
    "bad",
    [
        "2024-02-30T00:00:00Z", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z", "2024-00-01T00:00:00Z",
        "2024-01-00T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:60Z",
        "0000-01-01T00:00:00Z", "2024-01-01T00:00:00X", "2024-01-01T00:00:0/Z", "2024-01-01T00:00:0:Z",
        "2024-01-01T00:00:0éZ", "1772366400000000000Z",
    ],
)  # fmt: skip
def test_no_other_text_passes_in_a_crowd(bad: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        times([*["2024-01-01T00:00:00Z"] * MANY, bad])


def test_two_texts_that_only_together_have_the_right_length_are_refused() -> None:
    split = ["2024-01-01T00:00:00", "Z2024-01-01T00:00:00Z"]
    with pytest.raises(msgspec.ValidationError):
        times(["2024-01-01T00:00:00Z", *split] * MANY)


def test_a_leap_day_is_read_in_a_crowd() -> None:
    assert set(times(["2024-02-29T23:59:59.999999Z"] * MANY).tolist()) == {microseconds(LEAP_DAY)}
