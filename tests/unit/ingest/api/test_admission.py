"""Limits of what a process takes at once: what is refused, whom it meets, and what is never refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ingest.api.admission import LARGE, Intake, OverloadedError, in_turn


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def under_way() -> Iterator[ExitStack]:
    with ExitStack() as requests:
        yield requests


def refusal(intake: Intake, key: str) -> str | None:
    try:
        with intake.admitted(key):
            return None
    except OverloadedError as error:
        return error.why


def test_a_key_may_send_ten_seconds_worth_of_its_rate_at_once_and_no_more(clock: Clock) -> None:
    intake = Intake(2, 16, clock)
    assert [refusal(intake, "a") for _ in range(21)] == [None] * 20 + ["rate"]


def test_a_key_that_sent_too_much_may_send_again_when_it_is_told(clock: Clock) -> None:
    intake = Intake(0.25, 16, clock)
    for _ in range(2):
        refusal(intake, "a")
    with pytest.raises(OverloadedError) as told, intake.admitted("a"):
        pass
    clock.now += told.value.retry_after
    assert refusal(intake, "a") is None


def test_the_rate_of_one_key_is_nothing_to_another(clock: Clock) -> None:
    intake = Intake(1, 16, clock)
    assert [refusal(intake, "a") for _ in range(11)][-1] == "rate"
    assert refusal(intake, "b") is None


def test_quick_requests_are_taken_however_many_are_under_way(clock: Clock, under_way: ExitStack) -> None:
    intake = Intake(1000, 16, clock)
    for number in range(40):
        under_way.enter_context(intake.admitted(f"key {number % 3}"))
    assert refusal(intake, "a") is None


def test_when_threads_are_full_of_slow_requests_everybody_is_refused(
    clock: Clock, under_way: ExitStack
) -> None:
    intake = Intake(1000, 16, clock)
    for number in range(14):
        under_way.enter_context(intake.admitted(f"key {number}"))
    clock.now += 2
    assert refusal(intake, "another") == "busy"


def test_a_key_that_fills_the_threads_with_slow_requests_is_refused_before_others(
    clock: Clock, under_way: ExitStack
) -> None:
    intake = Intake(1000, 16, clock)
    for _ in range(11):
        under_way.enter_context(intake.admitted("greedy"))
    clock.now += 2
    assert (refusal(intake, "greedy"), refusal(intake, "another")) == ("key busy", None)


def test_all_are_taken_again_when_the_slow_ones_are_done(clock: Clock) -> None:
    intake = Intake(1000, 16, clock)
    with ExitStack() as requests:
        for number in range(14):
            requests.enter_context(intake.admitted(f"key {number}"))
        clock.now += 2
        assert refusal(intake, "a") == "busy"
    assert refusal(intake, "a") is None


def test_a_process_with_one_thread_takes_requests_one_after_the_other(clock: Clock) -> None:
    intake = Intake(1000, 1, clock)
    assert [refusal(intake, "a") for _ in range(3)] == [None] * 3


def test_of_large_bodies_one_is_read_at_a_time_and_small_ones_beside_it() -> None:
    entered = {size: threading.Event() for size in (LARGE, LARGE - 1)}

    def read(size: int) -> None:
        with in_turn(size):
            entered[size].set()

    readers = [threading.Thread(target=read, args=(size,)) for size in entered]
    with in_turn(LARGE):
        for reader in readers:
            reader.start()
        assert entered[LARGE - 1].wait(30)
        assert not entered[LARGE].wait(0.1)
    assert entered[LARGE].wait(30)
    for reader in readers:
        reader.join()
