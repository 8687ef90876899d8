"""Threads that send, a few for each lane: a receiver that never answers keeps those of its own lane, and nobody else's.

A lane is a mail server, a host, or the address of a service. One that answers may have ever more messages wait for its
threads; after one that did not answer in time it gets one at a time, until it answers again.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from incidents.domain.notifications.responses import Reply, no_answer
from incidents.notifications.queue import LEASE, Outgoing

THREADS = 4
"""Of one lane."""
MOST_THREADS = 256
"""Of all lanes."""
MOST_WAITING = 64
"""Messages that wait for the threads of one lane, or are with them."""
ABANDONED = 60.0
"""Seconds after which a message counts as not answered, whatever its thread still waits for."""
PASSED_OVER = LEASE.total_seconds() - ABANDONED
"""Seconds after which a message that still waits for a thread is left to its lease: it may be claimed again."""

Send = Callable[[Outgoing], Reply]
Holds = Callable[[int | None, float], bool]
"""Whether what was claimed under a number is still ours; may wait so many seconds to be sure."""


@dataclass(slots=True)
class _Queue:
    quota: int = THREADS
    threads: int = 0
    waiting: deque[tuple[Outgoing, float]] = field(default_factory=deque)

    @property
    def is_full(self) -> bool:
        return self.threads + len(self.waiting) >= self.quota


class WorkerPool:
    """Give messages with `submit`, take answers with `collect`."""

    def __init__(self, send: Send, holds: Holds = lambda _, __: True) -> None:
        self._send = send
        self._holds = holds
        self._lanes: dict[str, _Queue] = {}
        self._under_way: dict[int, tuple[Outgoing, float]] = {}
        self._answers: queue.SimpleQueue[tuple[Outgoing, Reply]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0

    def full(self) -> set[str]:
        """The lanes that take no more."""
        with self._lock:
            if len(self._under_way) >= MOST_THREADS:
                return set(self._lanes)
            return {name for name, lane in self._lanes.items() if lane.is_full}

    def room(self, name: str) -> int:
        """How many messages a lane takes now."""
        with self._lock:
            lane = self._lanes.get(name) or _Queue()
            left = min(lane.quota - lane.threads - len(lane.waiting), MOST_THREADS - len(self._under_way))
            return max(0, left)

    @property
    def busy(self) -> bool:
        with self._lock:
            return bool(self._under_way) or any(lane.waiting for lane in self._lanes.values())

    def submit(self, outgoing: Outgoing) -> None:
        with self._lock:
            lane = self._lanes.setdefault(outgoing.lane, _Queue())
            lane.waiting.append((outgoing, time.monotonic()))
            if lane.threads >= min(THREADS, lane.quota):
                return
            lane.threads += 1
        threading.Thread(
            target=self._work, args=(lane,), name=f"lane {outgoing.lane[:40]}", daemon=True
        ).start()

    def collect(self, seconds: float) -> list[tuple[Outgoing, Reply]]:
        """Answers, as many as there are, after waiting so long for the first; each message has one."""
        answers = []
        try:
            answers.append(self._answers.get(timeout=seconds))
            while len(answers) < MOST_WAITING:
                answers.append(self._answers.get_nowait())
        except queue.Empty:
            pass
        return answers + self._abandon()

    def _abandon(self) -> list[tuple[Outgoing, Reply]]:
        late = time.monotonic() - ABANDONED
        with self._lock:
            keys = [key for key, (_, since) in self._under_way.items() if since < late]
            gone = [self._under_way.pop(key)[0] for key in keys]
            for outgoing in gone:
                self._lanes[outgoing.lane].quota = 1
        return [(outgoing, no_answer(f"no answer within {ABANDONED:.0f} s")) for outgoing in gone]

    def _work(self, lane: _Queue) -> None:
        while (taken := self._next(lane)) is not None:
            key, outgoing, patience = taken
            if not self._holds(outgoing.holder, patience):
                with self._lock:
                    self._under_way.pop(key, None)
                continue
            began = time.monotonic()
            reply = self._send(outgoing)
            with self._lock:
                if self._under_way.pop(key, None) is not None:
                    self._answers.put((outgoing, reply))
                slow = reply.kind == "passing" and time.monotonic() - began > 1.0
                lane.quota = 1 if slow else min(MOST_WAITING, max(THREADS, lane.quota * 2))

    def _next(self, lane: _Queue) -> tuple[int, Outgoing, float] | None:
        """A message under its key, and for how many seconds it may still wait before it is sent."""
        with self._lock:
            while lane.waiting:
                outgoing, since = lane.waiting.popleft()
                patience = since + PASSED_OVER - time.monotonic()
                if patience < 0:
                    continue
                self._count += 1
                self._under_way[self._count] = (outgoing, time.monotonic())
                return self._count, outgoing, patience
            lane.threads -= 1
            return None
