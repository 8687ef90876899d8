"""Threads that bring work to one another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pytest

from ingest.db.database import GroupCommit, GroupCommitError


class Desk:
    """Commits groups of numbers, the first of them only when told to; every number becomes its double."""

    def __init__(self, most: int = 100) -> None:
        self.groups: list[list[int]] = []
        self.may_go_on = threading.Event()
        self.now = 0.0
        self.group_commit = GroupCommit(self.commit, most, lambda: self.now)
        self.outcomes: dict[int, int | type[Exception]] = {}
        self.threads: list[threading.Thread] = []

    def commit(self, numbers: Sequence[int]) -> list[int]:
        self.groups.append(list(numbers))
        if len(self.groups) == 1:
            assert self.may_go_on.wait(10)
        if 13 in numbers:
            raise ZeroDivisionError
        return [2 * number for number in numbers]

    def bring(self, number: int) -> None:
        def submit() -> None:
            try:
                self.outcomes[number] = self.group_commit.submit(number)
            except (GroupCommitError, ZeroDivisionError) as error:
                self.outcomes[number] = type(error)

        self.threads.append(threading.Thread(target=submit, daemon=True))
        self.threads[-1].start()

    def bring_while_the_first_is_at_work(self, *numbers: int) -> None:
        """0 leads alone; these wait behind it, in this order."""
        self.bring(0)
        until(lambda: bool(self.groups))
        for place, number in enumerate(numbers, 1):
            self.bring(number)
            until(lambda wanted=place: len(self.group_commit._waiting) == wanted)  # type: ignore[misc]

    def finish(self) -> None:
        self.may_go_on.set()
        for thread in self.threads:
            thread.join(10)
            assert not thread.is_alive(), "a thread waits for ever"


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def test_who_comes_alone_goes_at_once() -> None:
    desk = Desk()
    desk.may_go_on.set()
    assert [desk.group_commit.submit(number) for number in (1, 2)] == [2, 4]
    assert desk.groups == [[1], [2]]


def test_those_who_come_while_a_group_is_at_work_make_the_next_one() -> None:
    desk = Desk()
    desk.bring_while_the_first_is_at_work(1, 2, 3)
    desk.finish()
    assert desk.groups == [[0], [1, 2, 3]]


def test_each_gets_the_result_of_its_own_piece() -> None:
    desk = Desk()
    desk.bring_while_the_first_is_at_work(1, 2, 3)
    desk.finish()
    assert desk.outcomes == {number: 2 * number for number in range(4)}


def test_a_group_is_no_larger_than_it_may_be() -> None:
    desk = Desk(most=2)
    desk.bring_while_the_first_is_at_work(1, 2, 3, 4, 5)
    desk.finish()
    assert desk.groups == [[0], [1, 2], [3, 4], [5]]


def test_a_failure_is_raised_where_the_work_was_done_and_told_to_the_others() -> None:
    desk = Desk()
    desk.bring_while_the_first_is_at_work(1, 13, 3)
    desk.finish()
    assert desk.outcomes == {0: 0, 1: ZeroDivisionError, 13: GroupCommitError, 3: GroupCommitError}


def test_work_goes_on_after_a_failure() -> None:
    desk = Desk(most=1)
    desk.bring_while_the_first_is_at_work(13, 1)
    desk.finish()
    assert desk.outcomes[1] == 2
    assert desk.group_commit.submit(4) == 8


def test_a_commit_that_forgets_a_piece_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        GroupCommit[int, int](lambda _: [], 10).submit(1)


def test_who_was_in_company_a_moment_ago_is_waited_for() -> None:
    desk = Desk()
    desk.bring_while_the_first_is_at_work(1, 2)
    desk.now += 60  # so long the first group takes, and so long the next one may wait for 0 to come back
    desk.may_go_on.set()
    until(lambda: 0 in desk.outcomes)
    desk.bring(3)
    desk.finish()
    assert desk.groups == [[0], [1, 2, 3]]


def test_nobody_is_waited_for_longer_than_the_last_group_took() -> None:
    desk = Desk()
    desk.bring_while_the_first_is_at_work(1, 2)
    desk.now += 0.02
    desk.finish()
    assert desk.groups == [[0], [1, 2]]


def test_after_company_has_left_nobody_waits() -> None:
    desk = Desk()
    desk.bring_while_the_first_is_at_work(1)
    desk.now += 0.02
    desk.finish()
    desk.now += 0.01
    desk.group_commit.submit(2)
    desk.now += 60
    assert desk.group_commit.submit(3) == 6
    assert desk.groups[-2:] == [[2], [3]]
