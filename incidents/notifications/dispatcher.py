"""The process that delivers: sweeps in one thread, messages in those of their lanes, until it is told to stop."""

from __future__ import annotations

import random
import threading
import time
from datetime import datetime

import structlog
from django.db import InterfaceError, OperationalError, connection

from incidents.domain.notifications.responses import Reply
from incidents.notifications.channels.send import send
from incidents.notifications.key import check_key
from incidents.notifications.planner import plan_new
from incidents.notifications.queue import Outgoing, catch_up, claim, stop_answered, wake_for_critical
from incidents.notifications.results import Result, record_results
from incidents.notifications.worker_pool import WorkerPool
from incidents.worker.heartbeat import alive
from incidents.worker.leader import Presence
from incidents.worker.loops import start_loops
from incidents.worker.sweeps import run_sweeps
from ingest.commands import heartbeat
from ingest.queries import now_utc

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
    """One round after another: answers are recorded, what is due is planned, claimed and given to its lane."""

    def __init__(self, presence: Presence | None = None) -> None:
        self.presence = presence
        self.lanes = WorkerPool(send) if presence is None else WorkerPool(send, presence.holds)
        self.answers: list[tuple[Outgoing, Reply]] = []
        self._pulse = 0.0

    def round(self, now: datetime) -> int:
        """How much there was to do."""
        did = self.record(now)
        if beat := time.monotonic() - self._pulse > PULSE:
            did += catch_up(now)
        did += plan_new(now) + stop_answered(now) + wake_for_critical(now)
        holder = None if self.presence is None else self.presence.number
        for outgoing in (going := claim(now, self.lanes.full(), self.lanes.room, holder)):
            self.lanes.submit(outgoing)
        if beat:
            alive("sending", now, did + len(going))
            self._pulse = time.monotonic()
        return did + len(going)

    def record(self, now: datetime) -> int:
        """What was answered. It is kept until it is committed, whatever becomes of the database."""
        if self.answers:
            record_results([_result(outgoing, reply) for outgoing, reply in self.answers], now)
        did, self.answers = len(self.answers), []
        return did

    def wait(self, seconds: float) -> None:
        self.answers += self.lanes.collect(seconds)


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
        while deliverer.lanes.busy:
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
        try:
            did = deliverer.round(now_utc())
            pause = FIRST_PAUSE
            deliverer.wait(0.005 if did else idle)
        except (OperationalError, InterfaceError) as error:
            log.warning("database away", error=str(error).strip(), seconds=pause)
            pause = _pause(stop, pause)
        except (
            Exception
        ):  # the shell around a round: to end would be to forget what is under way, and send it twice
            log.exception("a round failed", seconds=pause)
            pause = _pause(stop, pause)
    heartbeat.rest("sending")
    _finish(deliverer)
    away.set()
    for thread in (sweeping, present, *loops):
        thread.join()
    connection.close()


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
        while deliverer.lanes.busy and time.monotonic() < deadline:
            deliverer.wait(0.05)
        deliverer.wait(0.0)
        deliverer.record(now_utc())
    except (OperationalError, InterfaceError) as error:
        log.warning("database away", error=str(error).strip())
