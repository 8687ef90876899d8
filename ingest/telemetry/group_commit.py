"""Group commit: what arrives while a transaction is at work is done by the next one, together.

The idea is that of every log manager (Gray and Reuter, Transaction Processing, 1993, section 9.5), brought to
the threads of one process: the first to come leads and goes at once, so nobody who is alone waits for company;
those who come meanwhile form the next group, led by the first of them. Pure: threads and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class GroupLost(Exception):
    """The thread that worked for the group failed; what became of the group is not known here."""


class GroupCommit(Generic[T, R]):
    """Hands what several threads bring to `commit`, up to `most` pieces at a time, one call after the other.

    `commit` gets the pieces in the order in which they came and answers with one result for each.
    """

    def __init__(self, commit: Callable[[Sequence[T]], Sequence[R]], most: int) -> None:
        self._commit = commit
        self._most = most
        self._lock = threading.Lock()
        self._waiting: list[_Seat[T, R]] = []
        self._at_work = False

    def submit(self, piece: T) -> R:
        """The result for this piece, from this thread or from one that came before.

        Raises what `commit` raises when this thread called it, and GroupLost when another one did.
        """
        seat = _Seat[T, R](piece)
        with self._lock:
            self._waiting.append(seat)
            seat.leads = not self._at_work
            self._at_work = True
        if not seat.leads:
            seat.turn.acquire()
        if seat.leads:
            self._lead()
        return seat.result()

    def _lead(self) -> None:
        with self._lock:
            group, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        try:
            results = self._commit([seat.piece for seat in group])
            for seat, result in zip(group, results, strict=True):
                seat.results.append(result)
        finally:
            with self._lock:
                self._at_work = bool(self._waiting)
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
            raise GroupLost
        return self.results[0]
