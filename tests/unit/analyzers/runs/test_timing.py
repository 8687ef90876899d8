"""Times at which windows are due."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers.runs.timing import (
    EPOCH,
    MOST_BEHIND,
    Cadence,
    clock,
    due,
    parse_span,
    span_text,
)
from analyzers.runs.windows import windows_before

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOURLY = Cadence(length=HOUR, every=5 * MINUTE, grace=30 * SECOND)
moments = st.timedeltas(timedelta(0), timedelta(days=3650)).map(lambda span: NOON + span)
spans = st.timedeltas(SECOND, timedelta(days=2))


def test_the_data_clock_stands_at_the_newest_row_while_telemetry_flows() -> None:
    assert clock(NOON, arrived_at=NOON + HOUR, now=NOON + HOUR + MINUTE, idle=2 * MINUTE) == NOON


def test_the_data_clock_goes_on_with_the_wall_once_senders_fall_silent() -> None:
    assert (
        clock(NOON, arrived_at=NOON + HOUR, now=NOON + HOUR + 5 * MINUTE, idle=2 * MINUTE)
        == NOON + 3 * MINUTE
    )


def test_a_sender_whose_clock_is_fast_does_not_close_windows_early() -> None:
    assert clock(NOON + 4 * MINUTE, arrived_at=NOON, now=NOON, idle=MINUTE) == NOON


def test_a_schedule_that_never_ran_starts_with_the_first_full_window() -> None:
    assert due(HOURLY, first=NOON, last_end=None, clock=NOON + HOUR + MINUTE).ends == (NOON + HOUR,)


def test_a_window_that_is_only_partly_in_the_telemetry_is_not_run() -> None:
    assert due(HOURLY, first=NOON + SECOND, last_end=None, clock=NOON + HOUR + MINUTE).ends == ()


def test_a_window_waits_for_its_grace() -> None:
    end = NOON + HOUR
    assert due(HOURLY, NOON, None, clock=end + 29 * SECOND).ends == ()
    assert due(HOURLY, NOON, None, clock=end + 30 * SECOND).ends == (end,)


def test_windows_missed_in_a_pause_are_made_up_oldest_first() -> None:
    last = NOON + HOUR
    found = due(HOURLY, NOON, last, clock=last + 16 * MINUTE)
    assert found.ends == (last + 5 * MINUTE, last + 10 * MINUTE, last + 15 * MINUTE)


def test_after_a_long_pause_only_the_newest_windows_are_made_up() -> None:
    found = due(HOURLY, NOON, NOON + HOUR, clock=NOON + timedelta(days=30))
    assert len(found.ends) == MOST_BEHIND
    assert found.left_out == 30 * 288 - 12 - MOST_BEHIND - 1


def test_a_schedule_that_was_made_finer_goes_on_where_it_stopped() -> None:
    found = due(Cadence(HOUR, MINUTE, timedelta(0)), NOON, NOON + HOUR, NOON + HOUR + 2 * MINUTE)
    assert found.ends == (NOON + HOUR + MINUTE, NOON + HOUR + 2 * MINUTE)


@given(moments, moments, spans, spans, st.timedeltas(timedelta(0), HOUR))
def test_every_due_window_is_aligned_over_and_inside_the_telemetry(
    first: datetime, at: datetime, length: timedelta, every: timedelta, grace: timedelta
) -> None:
    for end in due(Cadence(length, every, grace), first, None, at).ends:
        assert (end - EPOCH) % every == timedelta(0)
        assert end + grace <= at
        assert end - length >= first


@given(moments, st.lists(st.timedeltas(timedelta(0), 6 * HOUR), max_size=6), spans)
def test_however_the_clock_moves_every_window_is_due_exactly_once(
    first: datetime, strides: list[timedelta], every: timedelta
) -> None:
    cadence, at, last, run = Cadence(HOUR, every, timedelta(0)), first, None, []
    for stride in strides:
        at += stride
        for end in due(cadence, first, last, at).ends[:MOST_BEHIND]:
            run.append(end)
            last = end
    assert run == sorted(set(run))
    if sum(strides, timedelta(0)) // every < MOST_BEHIND:
        assert run == list(due(cadence, first, None, at).ends)


def test_history_ends_where_the_window_begins_and_stays_in_the_telemetry() -> None:
    found = windows_before(NOON, HOUR, count=3, first=NOON - 2 * HOUR)
    assert found == [(NOON - 2 * HOUR, NOON - HOUR), (NOON - HOUR, NOON)]


@pytest.mark.parametrize("text", ["250ms", "90s", "5m", "1h", "30d", "36h"])
def test_a_span_reads_as_it_is_written(text: str) -> None:
    assert span_text(parse_span(text)) == text


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "1.5h", "5 m", "1h30m"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a span"):
        parse_span(text)
