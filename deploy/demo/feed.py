"""Feeds the demo world through the public endpoint, minute by minute of its data time; then in real time."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from django.db import connections

from deploy.demo.last_week import recall
from deploy.demo.notes import Notes
from deploy.demo.screen import Screen
from deploy.demo.sender import RequestRejectedError, Sender, SenderStoppedError
from deploy.demo.world import HEALTHY, MINUTE, Batch, Demo


class Feeder:
    """`speed`: minutes of data time per minute during the stories."""

    def __init__(self, notes: Notes, sender: Sender, screen: Screen, speed: float) -> None:
        self.notes, self.sender, self.screen, self.speed = notes, sender, screen, speed
        self.stop = sender.stop
        self.demo = Demo(notes.start)
        self.finished = threading.Event()

    def run(self) -> None:
        """Feed until the sender is stopped. Takes up where an earlier run was stopped."""
        try:
            if self.notes.sent is None:
                self._send_inventory()
                self._recall()
                self._done(0)
            self._send_past()
            self._send_stories()
            self.finished.set()
            self._go_on()
        except RequestRejectedError as error:
            self.screen.say(f"The endpoint refused what the demo sent: {error}")
        except SenderStoppedError:
            pass

    def _send_inventory(self) -> None:
        batches = self.demo.inventory()
        for n, batch in enumerate(batches):
            self.screen.progress("World: inventory", n, len(batches))
            self._send(batch)
        rows = sum(len(batch.rows) for batch in batches)
        self.screen.progress("World: inventory", 1, 1, f"{rows:,} rows accepted")

    def _recall(self) -> None:
        """Last week's incidents and its reports, which no endpoint takes: they are recorded with their own times."""
        self.screen.progress("World: last week", 0, 1)
        made = recall(datetime.now(UTC), self.demo.seed)
        connections.close_all()
        self.screen.progress("World: last week", 1, 1, f"{len(made)} reports")

    def _send_past(self) -> None:
        for number in range(self.notes.sent or 0, HEALTHY):
            self._send_minute(number)
            self.screen.progress("World: a healthy hour", number + 1, HEALTHY)

    def _send_stories(self) -> None:
        total = self.demo.minutes - HEALTHY
        began, first = datetime.now(UTC), self.notes.sent or 0
        for number in range(first, self.demo.minutes):
            self._wait_until(began + (number + 1 - first) * MINUTE / self.speed)
            self._send_minute(number)
            shown = f"{self.demo.start + (number + 1) * MINUTE:%H:%M} data time"
            self.screen.progress("World: the stories", number + 1 - HEALTHY, total, shown)

    def _go_on(self) -> None:
        """Real time from now on; what would have happened while the demo was off did not."""
        first = max(self.notes.sent or 0, next(self.demo.after(datetime.now(UTC))))
        for number in self.demo.after(self.demo.start + first * MINUTE):
            self._wait_until(self.demo.start + (number + 1) * MINUTE)
            self._send_minute(number)

    def _send_minute(self, number: int) -> None:
        for batch in self.demo.minute(number):
            self._send(batch)
        self._done(number + 1)

    def _send(self, batch: Batch) -> None:
        name = f"demo-{self.demo.start:%Y%m%dT%H%M}-{batch.name}"
        self.sender.post_rows(batch.kind, batch.rows, name)

    def _done(self, minutes: int) -> None:
        self.notes.sent = minutes
        self.notes.save()

    def _wait_until(self, moment: datetime) -> None:
        seconds = (moment - datetime.now(UTC)).total_seconds()
        if self.stop.wait(max(0.0, seconds)):
            raise SenderStoppedError
