"""`manage.py validate_change`: whether forwarding before and after a change keeps to its specification."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from analyzers.runs.management.line_command import CommandInputError, LineCommand

VIOLATED = 1
_LONGEST = 160


class Command(LineCommand):
    help = (
        "Validate a network change: compare snapshots of forwarding before and after it with a"
        " relational specification. Exit 0 if the specification holds, 1 if it is violated, 2 for"
        " an invalid file."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("before", metavar="BEFORE", help="snapshot, JSON or CSV")
        parser.add_argument("after", metavar="AFTER", help="snapshot, JSON or CSV")
        parser.add_argument(
            "--spec", metavar="FILE", help="specification; default: `nochange`, for all traffic"
        )
        parser.add_argument("--json", action="store_true", help="print the verdict as JSON")

    def work(self, **options: Any) -> None:
        from analyzers.rela import (
            InvalidSnapshotError,
            InvalidSpecificationError,
            ValidationError,
            check,
            read_snapshot,
        )

        spec = "nochange" if options["spec"] is None else _text(options["spec"])
        try:
            before, after = (
                read_snapshot(name, _read(name)) for name in (options["before"], options["after"])
            )
            found = check(before, after, spec)
        except (InvalidSnapshotError, InvalidSpecificationError, ValidationError) as error:
            raise CommandInputError(str(error)) from error
        self.show([json.dumps(found, ensure_ascii=False, indent=2)] if options["json"] else _lines(found))
        if found["verdict"] == "violated":
            sys.stdout.flush()
            sys.exit(VIOLATED)


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise CommandInputError(f"{name}: {error.strerror}") from error


def _text(name: str) -> str:
    try:
        return _read(name).decode()
    except UnicodeDecodeError as error:
        raise CommandInputError(f"{name}: not UTF-8 text") from error


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"{found['verdict']}: {found['classes_violated']:,} of {found['classes']:,} traffic classes violate the"
        " specification"
    )
    for one in found["violations"]:
        more = one["classes_total"] - len(one["classes"])
        names = ", ".join(one["classes"])[:_LONGEST] + (f" and {more:,} more" if more else "")
        line = "all other paths" if one["line"] is None else f"line {one['line']}"
        yield ""
        yield f"{names}"
        yield f"  rule      {one['rule']} ({line})"
        yield f"  witness   {' '.join(one['witness'])}: {one['expected']}"
        yield f"  before    {_paths(one['before'])}"
        yield f"  after     {_paths(one['after'])}"
    if hidden := found["violations_total"] - len(found["violations"]):
        yield f"and {hidden:,} more violations"
    for note in found["notes"]:
        yield f"note: {note}"


def _paths(paths: list[list[str]]) -> str:
    return " | ".join(" ".join(path) for path in paths) or "none"
