"""`manage.py backtest NAME --from T --to T`: would this analyzer have been right?"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.base import CommandParser
from django.db import OperationalError

from analyzers import queries as analyzers
from analyzers.commands import (
    CommandFailedError,
    CommandInputError,
    InvalidParameterError,
    LineCommand,
    parse_params,
    parse_span,
)
from analyzers.contract import Analyzer
from analyzers.queries import NothingToReplayError, Replay
from incidents.scorecards.backtest import backtest
from incidents.scorecards.requests import cadence, retained_since
from incidents.scorecards.text import lines

TENTHS = 10


class Command(LineCommand):
    help = (
        "Run an installed analyzer on recorded telemetry and score it against the confirmed"
        " causes of incidents. Stores nothing. Exit 0 with a score, 2 for invalid options."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "name", metavar="NAME", help="name of the analyzer; `manage.py analyzers` lists them"
        )
        parser.add_argument(
            "--from",
            dest="start",
            required=True,
            metavar="T",
            help="start, RFC 3339 or a day such as 2026-11-20 (UTC)",
        )
        parser.add_argument(
            "--to", dest="end", required=True, metavar="T", help="end, exclusive, in the same format"
        )
        parser.add_argument(
            "--param",
            action="append",
            default=[],
            metavar="K=V",
            help="parameter of the analyzer, NAME=VALUE",
        )
        parser.add_argument(
            "--length", metavar="DURATION", help="length of a window; default: that of its schedule, else 1h"
        )
        parser.add_argument(
            "--every",
            metavar="DURATION",
            help="interval between windows; default: that of its schedule, else 5m",
        )
        parser.add_argument("--region", action="append", default=[], help="only this region; repeatable")
        parser.add_argument("--json", action="store_true", help="print JSON with every finding")

    def work(self, **options: Any) -> None:
        try:
            requested = self._replay_of(options)
            done = backtest(requested, self._progress())
        except analyzers.RegistryError as error:
            raise CommandFailedError(str(error)) from error
        except (analyzers.UnknownAnalyzerError, InvalidParameterError, NothingToReplayError) as error:
            raise CommandInputError(str(error)) from error
        except OperationalError as error:
            raise CommandFailedError(f"the database does not answer: {error}") from error
        if options["json"]:
            self.show([json.dumps(done.as_json(), ensure_ascii=False, indent=2)])
        else:
            self.show(lines(done))

    def _replay_of(self, options: dict[str, Any]) -> Replay:
        analyzer = analyzers.analyzer(options["name"])
        params = parse_params(analyzer, options["param"])
        start, end = _time("--from", options["start"]), _time("--to", options["end"])
        if start >= end:
            raise CommandInputError(f"--from {options['start']} is not before --to {options['end']}")
        length, every = (
            _span(f"--{name}", options[name]) if options[name] else None for name in ("length", "every")
        )
        length, every = cadence(analyzer.name, length, every)
        regions = tuple(dict.fromkeys(options["region"])) or analyzers.regions_of_analyzer(analyzer.name)
        return Replay(
            analyzer, params, regions, self._retained_since(analyzer, start, end), end, length, every
        )

    def _retained_since(self, analyzer: Analyzer, start: datetime, end: datetime) -> datetime:
        """Earliest begin of windows: those that retention has dropped cannot be judged again."""
        since = retained_since(analyzer, datetime.now(UTC))
        if end <= since:
            raise CommandInputError(
                f"telemetry is kept from {since:%Y-%m-%d %H:%M} UTC on; --to lies before that"
            )
        if start < since:
            self.note(f"telemetry is kept from {since:%Y-%m-%d %H:%M} UTC on; the backtest begins there")
        return max(start, since)

    def _progress(self) -> Callable[[int, int], None]:
        """Progress, on standard error: in place on a terminal, else a line at every tenth."""
        terminal, last_tenth = sys.stderr.isatty(), 0

        def tell(done: int, total: int) -> None:
            nonlocal last_tenth
            if terminal:
                sys.stderr.write("\r\x1b[K" if done == total else f"\r\x1b[Kwindow {done} of {total}")
            elif (tenth := done * TENTHS // total) > last_tenth:
                last_tenth = tenth
                sys.stderr.write(f"{done} of {total} windows done\n")
            sys.stderr.flush()

        return tell


def _time(option: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    is_day = len(text) == len("2026-11-20")
    if moment is None or (moment.tzinfo is None and not is_day):
        right = "an RFC 3339 time such as 2026-11-20T08:00:00Z, or a day such as 2026-11-20 (UTC)"
        raise CommandInputError(f"{option} {text}: must be {right}")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _span(option: str, text: str) -> timedelta:
    try:
        span = parse_span(text)
    except ValueError as error:
        raise CommandInputError(f"{option}: {error}") from None
    if not span:
        raise CommandInputError(f"{option} {text}: must be greater than 0")
    return span
