"""`manage.py topology_diff`: what rows of a topology would change, before they are sent."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections import defaultdict
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingest.db import database
from ingest.log.types import rfc3339
from ingest.telemetry.windows.offline import InvalidFileError, read_file
from ingest.topology.diff import Changed, diff, sign_of, summary
from ingest.topology.read import topology_at


class Command(BaseCommand):
    help = (
        "Compare `topology` rows, such as those of `convert topology`, with the current topology."
        " Changes nothing. Exit 1 if there are differences."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="NDJSON file; -: stdin")
        parser.add_argument(
            "--region", default="default", help="region of rows without one (default: default)"
        )
        parser.add_argument(
            "--gone",
            metavar="OUT",
            help="file for rows that end removed components, to be sent after the others",
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *, file: str, region: str, gone: str | None, **options: Any) -> None:
        regions = _rows_by_region(file, region)
        now = database.now()
        found = {name: diff(topology_at(name, now).components, rows) for name, rows in regions.items()}
        if options["json"]:
            shown = {name: [one.as_json() for one in changes] for name, changes in found.items()}
            self.stdout.write(json.dumps(shown, indent=2, ensure_ascii=False))
        else:
            for name, changes in found.items():
                for one in changes:
                    self.stdout.write(_line(one))
                self.stdout.write(f"Region {name}: {summary(changes)}.")
        if gone is not None:
            self._write_gone(gone, found, now)
        if any(found.values()):
            sys.exit(1)

    def _write_gone(self, file: str, found: dict[str, list[Changed]], now: datetime) -> None:
        rows = [
            {"time": rfc3339(now), "region": name, "component": one.component, "active": False}
            for name, changes in found.items()
            for one in changes
            if one.after is None
        ]
        try:
            Path(file).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        except OSError as error:
            raise CommandError(f"{file}: cannot be written: {error.strerror}", returncode=2) from None
        self.stderr.write(f"{len(rows)} rows that end components in {file}")


def _rows_by_region(file: str, region: str) -> dict[str, list[dict[str, Any]]]:
    """The rows, checked as the endpoint checks them, oldest first."""
    name = "standard input" if file == "-" else file
    try:
        body = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        checked = read_file("topology", "-", BytesIO(body))
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}", returncode=2) from None
    except InvalidFileError as error:
        raise CommandError(str(error).replace("standard input", name, 1), returncode=2) from None
    if not checked.count:
        raise CommandError(f"{name}: holds no rows", returncode=2)
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(map(json.loads, filter(str.strip, body.decode().splitlines())), key=_time):
        found[row.get("region") or region].append(row)
    return found


def _time(row: dict[str, Any]) -> float:
    time = row["time"]
    return time / 1e9 if isinstance(time, int) else datetime.fromisoformat(time).timestamp()


def _line(one: Changed) -> str:
    lines = [f"{sign_of(one)} {one.component}"]
    if one.after is not None:
        for field, before, after in one.differences:
            if one.before is None and after:
                lines.append(f"    {field}: {_short(after)}")
            elif one.before is not None:
                lines.append(f"    {field}: {_short(before)} -> {_short(after)}")
    return "\n".join(lines)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:197]}..."
