"""Lists the installed analyzers: what each requires and which parameters it takes."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandParser

from analyzers import registry
from analyzers.contract import Analyzer, Param, describe
from analyzers.runs.management.line_command import CommandFailedError, LineCommand


class Command(LineCommand):
    help = (
        "List the installed analyzers: name, version, title, telemetry kinds, parameters with their defaults."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print a JSON array")

    def work(self, **options: Any) -> None:
        found = list(registry.installed().values())
        if options["json"]:
            self.show([json.dumps([described(one) for one in found], indent=2, ensure_ascii=False)])
        else:
            self.show(line for one in found for line in _lines(one))
        if problems := registry.problems():
            raise CommandFailedError(" ".join(map(str, problems)))


def described(analyzer: Analyzer) -> dict[str, Any]:
    """An analyzer as JSON values."""
    return {
        "name": analyzer.name,
        "version": analyzer.version,
        "title": analyzer.title,
        "inputs": [{"name": one.name, "kinds": list(one.kinds)} for one in analyzer.inputs],
        "params": [_param(param) for param in analyzer.params],
        "history": analyzer.history,
    }


def _param(param: Param) -> dict[str, Any]:
    return {
        "name": param.name,
        "default": param.default,
        "help": param.help,
        "choices": list(param.choices),
        "low": param.low,
        "high": param.high,
    }


def _lines(analyzer: Analyzer) -> list[str]:
    ways = ", or ".join(" and ".join(one.kinds) for one in analyzer.inputs)
    lines = [f"{analyzer.name} {analyzer.version}  {analyzer.title}", f"    requires {ways}"]
    width = max((len(param.name) for param in analyzer.params), default=0)
    for param in analyzer.params:
        lines.append(f"    {param.name:{width}}  = {param.default}  ({describe(param)}): {param.help}")
    return lines
