"""The process that delivers: sweeps in one thread, messages in the worker threads of their queues, until it is
stopped.

A queue is a mail server, a host, or the address of a service. A queue that answers may have ever more messages
wait for its threads; after a message that was not answered in time it gets one at a time until it answers again.
So a receiver that never answers blocks only its own queue.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import structlog
from django.db import InterfaceError, OperationalError, connection

from incidents.domain.notifications.delivery import Reply, no_answer
from incidents.notifications.channels.send import send
from incidents.notifications.contact_methods import remove_gone
from incidents.notifications.key import check_key
from incidents.notifications.queue import (
    LEASE,
    Outgoing,
    catch_up,
    claim,
    pending,
    plan_new,
    stop_answered,
    wake_for_critical,
)
from incidents.notifications.results import Result, record_results
from incidents.worker.leader import Presence
from incidents.worker.parts import Failure, alive, attempt, start_loops
from incidents.worker.sweeps import run_sweeps
from ingest.commands import heartbeat
from ingest.queries import now_utc

# Worker pool
# ----------------------------------------------------------------------------------------------------------
THREADS = 4
"""Of one queue."""
MOST_THREADS = 256
"""Of all queues."""
MOST_WAITING = 64
"""Messages that wait for the threads of one queue, or are with them."""
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
        self._queues: dict[str, _Queue] = {}
        self._under_way: dict[int, tuple[Outgoing, float]] = {}
        self._answers: queue.SimpleQueue[tuple[Outgoing, Reply]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0

    def full(self) -> set[str]:
        """The queues that take no more."""
        with self._lock:
            if len(self._under_way) >= MOST_THREADS:
                return set(self._queues)
            return {name for name, queue in self._queues.items() if queue.is_full}

    def room(self, name: str) -> int:
        """Number of messages that a queue takes now."""
        with self._lock:
            queue = self._queues.get(name) or _Queue()
            left = min(queue.quota - queue.threads - len(queue.waiting), MOST_THREADS - len(self._under_way))
            return max(0, left)

    @property
    def busy(self) -> bool:
        with self._lock:
            return bool(self._under_way) or any(queue.waiting for queue in self._queues.values())

    def submit(self, outgoing: Outgoing) -> None:
        with self._lock:
            queue = self._queues.setdefault(outgoing.queue, _Queue())
            queue.waiting.append((outgoing, time.monotonic()))
            if queue.threads >= min(THREADS, queue.quota):
                return
            queue.threads += 1
        threading.Thread(
            target=self._work, args=(queue,), name=f"queue {outgoing.queue[:40]}", daemon=True
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
                self._queues[outgoing.queue].quota = 1
        return [(outgoing, no_answer(f"no answer within {ABANDONED:.0f} s")) for outgoing in gone]

    def _work(self, queue: _Queue) -> None:
        while (taken := self._next(queue)) is not None:
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
                queue.quota = 1 if slow else min(MOST_WAITING, max(THREADS, queue.quota * 2))

    def _next(self, queue: _Queue) -> tuple[int, Outgoing, float] | None:
        """A message under its key, and for how many seconds it may still wait before it is sent."""
        with self._lock:
            while queue.waiting:
                outgoing, since = queue.waiting.popleft()
                patience = since + PASSED_OVER - time.monotonic()
                if patience < 0:
                    continue
                self._count += 1
                self._under_way[self._count] = (outgoing, time.monotonic())
                return self._count, outgoing, patience
            queue.threads -= 1
            return None


# Dispatcher
# ----------------------------------------------------------------------------------------------------------
IDLE = 0.5
"""Seconds between looks when nothing was due."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between attempts to reach the database."""
LAST_ANSWERS = 2.0
"""Seconds that the end waits for answers; what they leave open is sent again by the next process."""
LONGEST_ROUND = 120.0
"""Seconds after which a round counts as hanging."""
PULSE = 5.0
"""Seconds between signs of life."""

log = structlog.get_logger("deliver")


class Deliverer:
    """One round after another: answers are recorded, what is due is planned, claimed and given to its queue."""

    def __init__(self, presence: Presence | None = None) -> None:
        self.presence = presence
        self.pool = WorkerPool(send) if presence is None else WorkerPool(send, presence.holds)
        self.answers: list[tuple[Outgoing, Reply]] = []
        self._pulse = 0.0

    def round(self, now: datetime) -> int:
        """Do one round; the number of things that were done."""
        did = self.record(now)
        if beat := time.monotonic() - self._pulse > PULSE:
            did += catch_up(now)
        waiting = pending(now)
        if waiting.new:
            did += plan_new(now)
        if waiting.new or waiting.later:
            did += stop_answered(now) + wake_for_critical(now)
        if waiting.due or did:
            did += self._submit_due(now)
        if beat:
            alive("sending", now, did)
            self._pulse = time.monotonic()
        return did

    def _submit_due(self, now: datetime) -> int:
        holder = None if self.presence is None else self.presence.number
        for outgoing in (going := claim(now, self.pool.full(), self.pool.room, holder)):
            self.pool.submit(outgoing)
        return len(going)

    def record(self, now: datetime) -> int:
        """Record the answers. It is kept until it is committed, whatever becomes of the database."""
        if self.answers:
            record_results([_result(outgoing, reply) for outgoing, reply in self.answers], now)
        answers, self.answers = self.answers, []
        gone = [outgoing for outgoing, reply in answers if reply.is_gone]
        if gone:
            remove_gone({pk: outgoing.address for outgoing in gone for pk, _ in outgoing.deliveries})
        return len(answers)

    def wait(self, seconds: float) -> None:
        self.answers += self.pool.collect(seconds)


def _result(outgoing: Outgoing, reply: Reply) -> Result:
    return Result(outgoing.deliveries, reply, random.random())


def deliver_due(now: datetime, patience: float = 30.0) -> int:
    """Send all that is due at `now` and record it as of then; how many messages were answered.

    For tests and tools: the process does the same, round by round.
    """
    deliverer, answered = Deliverer(), 0
    deadline = time.monotonic() + patience
    while True:
        did = deliverer.round(now)
        while deliverer.pool.busy:
            if time.monotonic() > deadline:
                raise TimeoutError(f"messages are still under way after {patience:.0f} s")
            deliverer.wait(0.05)
        deliverer.wait(0.0)
        if not did and not deliverer.answers:
            return answered
        answered += len(deliverer.answers)


def run(stop: threading.Event, idle: float = IDLE) -> None:
    """Deliver until `stop` is set. Survives a database that goes away. Raises WrongKeyError before the first claim."""
    _wait_for_key(stop)
    sweeping = threading.Thread(target=run_sweeps, args=(stop,), name="sweeps", daemon=True)
    sweeping.start()
    loops = start_loops(stop)
    presence, away = Presence(), threading.Event()
    present = threading.Thread(target=presence.run, args=(away,), name="presence", daemon=True)
    present.start()
    deliverer, pause = Deliverer(presence), FIRST_PAUSE
    while not stop.is_set():
        heartbeat.progress("sending", LONGEST_ROUND)
        ended = attempt(partial(_round, deliverer, idle))
        if not isinstance(ended, Failure):
            pause = FIRST_PAUSE
            continue
        # What is under way is not forgotten: it would be sent twice.
        if isinstance(ended.error, OperationalError | InterfaceError):
            log.warning("database away", error=str(ended.error).strip(), seconds=pause)
        else:
            log.error("a round failed", seconds=pause, exc_info=ended.error)
        pause = _pause(stop, pause)
    heartbeat.rest("sending")
    _finish(deliverer)
    away.set()
    for thread in (sweeping, present, *loops):
        thread.join()
    connection.close()


def _round(deliverer: Deliverer, idle: float) -> None:
    did = deliverer.round(now_utc())
    deliverer.wait(0.005 if did else idle)


def _wait_for_key(stop: threading.Event) -> None:
    """Return once the database says that the key of this process is right, or `stop` is set. Raises WrongKeyError."""
    pause = FIRST_PAUSE
    while not stop.is_set():
        try:
            check_key()
        except (OperationalError, InterfaceError) as error:
            log.warning("database away", error=str(error).strip(), seconds=pause)
            pause = _pause(stop, pause)
        else:
            return


def _pause(stop: threading.Event, seconds: float) -> float:
    """For how long to wait the next time."""
    connection.close()
    stop.wait(seconds)
    return min(seconds * 2, LONGEST_PAUSE)


def _finish(deliverer: Deliverer) -> None:
    deadline = time.monotonic() + LAST_ANSWERS
    try:
        while deliverer.pool.busy and time.monotonic() < deadline:
            deliverer.wait(0.05)
        deliverer.wait(0.0)
        deliverer.record(now_utc())
    except (OperationalError, InterfaceError) as error:
        log.warning("database away", error=str(error).strip())
