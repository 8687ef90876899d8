"""Group commit: what arrives while a transaction is at work is done by the next one, together.

The idea is that of every log manager (Gray and Reuter, Transaction Processing, 1993, section 9.5), brought to
the threads of one process: the first to come leads, those who come meanwhile form the next group, led by the
first of them. Who is alone goes at once. In company a leader waits for those who were there a moment ago, because
senders whose bodies were stored together come back together; without that two groups take turns, each waiting out
the other's flush of the disk. Pure: threads and nothing else.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class GroupCommitError(Exception):
    """The thread that worked for the group failed; what became of the group is not known here."""


class GroupCommit(Generic[T, R]):
    """Hands what several threads bring to `commit`, up to `most` pieces at a time, one call after the other.

    `commit` gets the pieces in the order in which they came and answers with one result for each.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[T]], Sequence[R]],
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._commit = commit
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: list[_Seat[T, R]] = []
        self._at_work = False
        self._gathering = False
        self._company = 0  # how many there were when the last group was done
        self._until = 0.0  # when those of them who have not come back are no longer waited for

    def submit(self, piece: T) -> R:
        """The result for this piece, from this thread or from one that came before.

        Raises what `commit` raises when this thread called it, and GroupCommitError when another one did.
        """
        seat = _Seat[T, R](piece)
        with self._lock:
            self._waiting.append(seat)
            seat.leads = not self._at_work
            self._at_work = True
            if self._gathering and len(self._waiting) >= min(self._company, self._most):
                self._gathering = False
                self._waiting[0].turn.release()
        if not seat.leads:
            seat.turn.acquire()
        if seat.leads:
            self._collect_group(seat)
            self._lead()
        return seat.result()

    def _collect_group(self, leader: _Seat[T, R]) -> None:
        """Wait for those who were there when the last group was done, for as long as that group took."""
        with self._lock:
            patience = self._until - self._clock()
            if patience <= 0 or len(self._waiting) >= min(self._company, self._most):
                return
            self._gathering = True
        leader.turn.acquire(timeout=patience)

    def _lead(self) -> None:
        began = self._clock()
        with self._lock:
            self._gathering = False
            group, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        try:
            results = self._commit([seat.piece for seat in group])
            for seat, result in zip(group, results, strict=True):
                seat.results.append(result)
        finally:
            ended = self._clock()
            with self._lock:
                self._at_work = bool(self._waiting)
                self._company = len(group) + len(self._waiting)
                self._until = 2 * ended - began
                next_leader = self._waiting[:1]
            for seat in next_leader:
                seat.leads = True
            for seat in (*next_leader, *group[1:]):
                seat.turn.release()


class _Seat(Generic[T, R]):
    """One thread's place in the queue. The leader of a group sits first in it."""

    __slots__ = ("leads", "piece", "results", "turn")

    def __init__(self, piece: T) -> None:
        self.piece = piece
        self.leads = False
        self.results: list[R] = []
        self.turn = threading.Lock()
        self.turn.acquire()

    def result(self) -> R:
        if not self.results:
            raise GroupCommitError
        return self.results[0]
