"""Sends what webhooks are to be told: reads the log for each from its own place, sends in threads, writes down.

No event is copied on its way: a storm of a hundred thousand costs the log's other followers nothing and is read a
hundred at a time. Each webhook has threads of its own, so that one that hangs holds up itself alone. Any number of
processes may send: a lock of the database's session gives each webhook to one of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog
from django.db import InterfaceError, OperationalError, connection

from incidents.security.encryption import DecryptionError
from incidents.webhooks import round as rounds
from incidents.webhooks.deliveries import Histories
from incidents.webhooks.models import Webhook
from incidents.webhooks.round import Round
from incidents.webhooks.send import send_in_order
from incidents.worker.parts import Failure, attempt, try_lock, unlock
from ingest.commands import database_is_lost, retrying
from ingest.queries import Position, now_utc

AT_ONCE = 4
"""Incidents of one webhook with concurrent deliveries."""
IDLE = 0.3
"""Seconds between looks when nothing was due."""
PLACE_EVERY = timedelta(seconds=60)
"""Interval at which a place that passed nothing but foreign events is written down."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0

log = structlog.get_logger("webhooks")


@dataclass(slots=True)
class WebhookWorker:
    """State of a webhook in a process that sends for it."""

    pool: ThreadPoolExecutor
    histories: Histories = field(default_factory=Histories)
    round: Round | None = None
    place: str = ""
    read_to: Position = Position.START
    saved_at: datetime | None = None
    held_first: bool = True


class WebhookDispatcher:
    """Drives every webhook that this process holds the lock of. Belongs to one thread and its connection."""

    def __init__(self) -> None:
        self._workers: dict[int, WebhookWorker] = {}
        self._left_alone: dict[int, float] = {}

    def step(self, now: datetime) -> int:
        """Write down the rounds that are over and begin those that are due; how many there were."""
        did = self.record_results()
        webhooks = {row.pk: row for row in Webhook.objects.filter(active=True)}
        for gone in set(self._workers) - set(webhooks):
            self._drop(gone)
        self._left_alone = {pk: until for pk, until in self._left_alone.items() if pk in webhooks}
        for pk, webhook in webhooks.items():
            worker = None if self._left_alone.get(pk, 0.0) > time.monotonic() else self._worker(pk)
            if worker is None or worker.round is not None or webhook.health.left_alone(now):
                continue
            did += self._apart(pk, partial(self._begin, worker, webhook, now))
        return did

    def record_results(self) -> int:
        """Write down the rounds that are over; how many there were."""
        over = [
            (pk, worker)
            for pk, worker in self._workers.items()
            if worker.round is not None and worker.round.over
        ]
        return sum(self._apart(pk, partial(self._finish, worker)) for pk, worker in over)

    def _apart(self, pk: int, do: Callable[[], int]) -> int:
        """A webhook that fails here is left alone for a while, and keeps none of the others from being told."""
        did = attempt(do)
        if not isinstance(did, Failure):
            return did
        if database_is_lost(did.error):
            raise did.error
        log.error("webhook failed", webhook=pk, exc_info=did.error)
        self._drop(pk)
        self._left_alone[pk] = time.monotonic() + LONGEST_PAUSE
        return 0

    def wait(self, seconds: float) -> None:
        """Until a delivery is over, at most so long."""
        running = [
            job.future
            for worker in self._workers.values()
            if worker.round is not None
            for job in worker.round.jobs
            if job.future is not None and not job.future.done()
        ]
        if running:
            wait(running, timeout=seconds, return_when=FIRST_COMPLETED)

    @property
    def busy(self) -> bool:
        return any(worker.round is not None for worker in self._workers.values())

    def forget(self) -> None:
        """The connection is gone and the locks with it: what is under way is not written down and sent again."""
        for pk in list(self._workers):
            self._drop(pk)

    def _worker(self, pk: int) -> WebhookWorker | None:
        if pk not in self._workers and try_lock(f"webhook {pk}"):
            self._workers[pk] = WebhookWorker(ThreadPoolExecutor(AT_ONCE, f"webhook {pk}"))
        return self._workers.get(pk)

    def _drop(self, pk: int) -> None:
        worker = self._workers.pop(pk)
        worker.pool.shutdown(wait=False, cancel_futures=True)
        if connection.connection is not None:
            unlock(f"webhook {pk}")

    def _begin(self, worker: WebhookWorker, webhook: Webhook, now: datetime) -> int:
        if worker.place != webhook.position:
            worker.place, worker.read_to = webhook.position, webhook.place
        try:
            one = rounds.begin(webhook, worker.histories, now, worker.read_to, worker.held_first)
        except DecryptionError as error:
            # Its place in the log stays, so that nothing is lost until the right key is there.
            log.error("secret of a webhook cannot be read", webhook=webhook.name, error=str(error))
            self._left_alone[webhook.pk] = time.monotonic() + LONGEST_PAUSE
            return 0
        worker.held_first = not worker.held_first
        if not one.jobs:
            self._pass_over(worker, one, now)
            return int(one.more)
        for job in one.jobs:
            job.future = worker.pool.submit(send_in_order, one.address, job.letters, one.trouble)
        worker.round = one
        return 1

    def _pass_over(self, worker: WebhookWorker, one: Round, now: datetime) -> None:
        """Nothing for it there: where it stands is written down only now and then, or because it has to be."""
        passed, worker.read_to = one.reached > worker.read_to, one.reached
        if not passed or not (one.skipped or worker.saved_at is None or now - worker.saved_at >= PLACE_EVERY):
            return
        worker.saved_at, reached = now, str(one.reached)
        moved = Webhook.objects.filter(pk=one.webhook.pk, position=one.webhook.position).update(
            position=reached
        )
        worker.place = reached if moved else ""

    def _finish(self, worker: WebhookWorker) -> int:
        one, worker.round = worker.round, None
        assert one is not None
        if not retrying(partial(rounds.finish, one)):
            worker.place = ""
        return 1


def run(stop: threading.Event, idle: float = IDLE) -> None:
    """Send until `stop` is set; what is under way then is written down. Survives a database that goes away."""
    courier, pause = WebhookDispatcher(), FIRST_PAUSE
    while not (stop.is_set() and not courier.busy):
        try:
            if stop.is_set():
                courier.wait(idle)
                courier.record_results()
                continue
            did = courier.step(now_utc())
            pause = FIRST_PAUSE
        except (OperationalError, InterfaceError) as error:
            log.warning("database away", error=str(error).strip(), seconds=pause)
            connection.close()
            courier.forget()
            stop.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
            continue
        if courier.busy:
            courier.wait(idle)
        elif not did:
            stop.wait(idle)
    courier.forget()
