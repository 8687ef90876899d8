"""`manage.py rebuild_projections`"""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from incidents.incident.rebuild import Progress, RebuildRunningError, rebuild

EVERY = 5.0
"""Seconds between lines of progress."""


class Command(BaseCommand):
    help = (
        "Rebuild all read models of incidents from the log, while the service runs, and report"
        " differences. An interrupted rebuild resumes at the next start."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--from-start",
            action="store_true",
            help="start at the beginning of the log instead of resuming",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            result = rebuild(_Lines(self), options["from_start"])
        except RebuildRunningError as error:
            raise CommandError(f"{error}; wait for its end") from error
        if not result.differed:
            print(f"{result.incidents} incidents rebuilt from the log; nothing differed")
            return
        print(f"{result.incidents} incidents rebuilt from the log; differed before:")
        for name in result.differed:
            print(f"  {name}")


class _Lines:
    """On the standard error: share of the log, incidents a second, time left."""

    def __init__(self, command: Command) -> None:
        self._out = command.stderr
        self._began = self._told = time.monotonic()
        self._first: Progress | None = None

    def __call__(self, now: Progress) -> None:
        if self._first is None:
            self._first = now
            if now.resumed is not None:
                self._out.write(
                    f"Rebuild of {now.resumed:%Y-%m-%d %H:%M} UTC resumed at {now.part:.0%}; --from-start starts over."
                )
            return
        moment = time.monotonic()
        if moment - self._told < EVERY:
            return
        self._told, spent = moment, moment - self._began
        self._out.write(line(self._first, now, spent))


def line(first: Progress, now: Progress, seconds: float) -> str:
    """Progress of a process since `first`, `seconds` ago, and the time that the rest takes at this rate."""
    rate, done = (now.incidents - first.incidents) / seconds, now.part - first.part
    left = f"{seconds * (1 - now.part) / done:,.0f} s left" if done > 0 else "time left unknown"
    return f"{now.part:.0%} of the log, {now.incidents:,} incidents, {rate:,.0f} incidents/s, {left}"
