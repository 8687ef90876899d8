"""Heartbeats of the processes that others write the loops of: Celery's worker and scheduler, Granian's event loop."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import structlog
from celery import bootsteps
from django.db import DatabaseError, InterfaceError
from django_celery_beat.schedulers import DatabaseScheduler

from deploy.embedded import die_with_parent
from deploy.processes import TASKS
from incidents.worker.parts import alive
from ingest.commands import Leader, heartbeat, watch_database
from ingest.queries import now_utc

LONGEST_TURN = 5.0
"""Seconds after which an event loop counts as hanging."""
LONGEST_TICK = 60.0
"""Seconds after which Celery's scheduler or the consumer of its worker counts as hanging."""
EVERY = 1.0
TASKS_EVERY = 5.0
"""Seconds between two notes of a process of the worker."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
log = structlog.get_logger("worker")


def beating(application: Application, *, lifespan: bool = False) -> Application:
    """The ASGI application, whose event loop reports its progress from its start to its shutdown.

    The watch of the database begins with it, in the process that serves. `lifespan`: the application wants to be told
    of its start and shutdown.
    """
    tasks: list[asyncio.Task[None]] = []

    async def served(
        scope: Message,
        receive: Receive,
        send: Send,
    ) -> None:
        if not tasks:
            heartbeat.start()
            watch_database()
            tasks.append(asyncio.get_running_loop().create_task(_turning()))
        if scope["type"] == "lifespan" and not lifespan:
            await _started(receive, send)
        else:
            await application(scope, receive, send)

    return served


async def _started(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _turning() -> None:
    while True:
        heartbeat.progress("event loop", LONGEST_TURN)
        await asyncio.sleep(EVERY)


class Consuming(bootsteps.StartStopStep):
    """Step of a worker's consumer: reports progress while it consumes, and rests while the broker is away."""

    requires = ("celery.worker.consumer:Tasks",)

    def start(self, consumer: Any) -> None:
        heartbeat.progress("consumer", LONGEST_TICK)
        self.timer = consumer.timer.call_repeatedly(EVERY, heartbeat.progress, ("consumer", LONGEST_TICK))

    def stop(self, _consumer: Any) -> None:
        self.timer.cancel()
        heartbeat.rest("consumer")


class Scheduler(DatabaseScheduler):  # type: ignore[misc]
    """Celery beat's scheduler of rows: ticks while it leads, stands by otherwise, and reports either.

    Who takes over reads the schedule anew. The leader writes its last ticks every few minutes only, so that some tasks
    are sent once more than they are due; rows decide whether anything is to be done.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._leader = Leader("scheduler")
        self._stands_by = True
        if not kwargs.get("lazy"):
            heartbeat.start()
            watch_database()
            self._leader.start()

    def tick(self, *args: Any, **kwargs: Any) -> float:
        heartbeat.progress("scheduler", LONGEST_TICK)
        if not self._leader.leads:
            self._stands_by = True
            return EVERY / 2
        if self._stands_by:
            self._dirty.clear()
            self._initial_read, self._heap, self._stands_by = True, None, False
        return min(float(super().tick(*args, **kwargs)), EVERY)


def begin_worker() -> None:
    """For the signal `worker_init`: in the worker's main process."""
    heartbeat.start()
    watch_database()


def begin_pool_process() -> None:
    """For the signal `worker_process_init`: a fork inherits neither threads nor the signal at its parent's end."""
    die_with_parent(signal.SIGKILL)()
    watch_database()


_noted = -TASKS_EVERY


def note_task() -> None:
    """For the signal `task_postrun`: note that tasks are done, at most every TASKS_EVERY seconds."""
    global _noted
    if time.monotonic() - _noted < TASKS_EVERY:
        return
    try:
        alive(TASKS, now_utc())
    except (DatabaseError, InterfaceError) as error:
        log.warning("a task was not noted", error=str(error))
    else:
        _noted = time.monotonic()
