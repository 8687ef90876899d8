"""Runs one analyzer on files, with no database, no server and no configuration."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandParser

from analyzers import cli_output, registry
from analyzers.contract import Analyzer, Input, InvalidParameterError
from analyzers.runs.management.line_command import (
    CommandFailedError,
    CommandInputError,
    LineCommand,
    is_terminal,
    parse_params,
    progress,
)

if TYPE_CHECKING:
    from ingest.telemetry.decode.columns import Rows


class Command(LineCommand):
    help = "Run one analyzer on files and print its verdict. Exit 0 with a verdict, 2 for invalid input."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "name", metavar="NAME", help="name of the analyzer; `manage.py analyzers` lists them"
        )
        parser.add_argument(
            "--input",
            action="append",
            default=[],
            metavar="KIND=FILE",
            help="telemetry of a kind: .ndjson, .jsonl, .json, .parquet, .arrow, or - for NDJSON from stdin",
        )
        parser.add_argument(
            "--param",
            action="append",
            default=[],
            metavar="K=V",
            help="parameter of the analyzer, NAME=VALUE",
        )
        parser.add_argument(
            "--every",
            metavar="DURATION",
            help="split the telemetry into consecutive windows of this length, such as 5m or 1h",
        )
        parser.add_argument(
            "--json", action="store_true", help="print JSON; with --every one line per window"
        )

    def work(self, **options: Any) -> None:
        # `analyze --help` answers without numpy.
        from analyzers import offline
        from analyzers.runner import AnalysisError

        try:
            analyzer = registry.get(options["name"])
            params = parse_params(analyzer, options["param"])
            every = offline.duration(options["every"]) if options["every"] is not None else None
            tables = offline.read(options["input"], sys.stdin.buffer)
            one = offline.choose_input(analyzer, tables)
            for kind in tables.keys() - set(one.kinds):
                self.note(f"{analyzer.name} does not read {kind}")
            self._print(
                self._verdicts(analyzer, one, tables, every, params), every is not None, options["json"]
            )
        except (registry.RegistryError, AnalysisError) as error:
            raise CommandFailedError(str(error)) from error
        except (registry.UnknownAnalyzerError, InvalidParameterError, offline.AnalysisInputError) as error:
            raise CommandInputError(str(error)) from error

    def _verdicts(
        self,
        analyzer: Analyzer,
        one: Input,
        tables: Mapping[str, Rows],
        every: timedelta | None,
        params: Mapping[str, object],
    ) -> Iterator[dict[str, Any]]:
        from analyzers import offline
        from analyzers.runner import judge

        tell = progress(f"{analyzer.name}: window")
        for number, window in enumerate(offline.windows(analyzer, one, tables, every), start=1):
            tell(f"{number}, from {window.start:%Y-%m-%d %H:%M:%S}")
            verdict = judge(analyzer, window, params)
            tell("")
            for note in (offline.unplaced(window), offline.placed_later(window)):
                if note:
                    self.note(note)
            yield verdict

    def _print(self, verdicts: Iterator[dict[str, Any]], many: bool, as_json: bool) -> None:
        style = cli_output.TERMINAL if is_terminal(sys.stdout) else cli_output.PLAIN
        for verdict in verdicts:
            if as_json:
                self.show([json.dumps(verdict, ensure_ascii=False, indent=None if many else 2)])
            else:
                self.show(cli_output.brief(verdict, style) if many else cli_output.whole(verdict, style))
