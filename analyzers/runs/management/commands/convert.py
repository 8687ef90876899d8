"""Makes telemetry rows of files in other formats; at present `spans` into `path_outcome`."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from analyzers.runs.management.offline_command import OfflineCommand, Refused, progress
from ingest.doors import spans


class Command(OfflineCommand):
    help = (
        "Make path_outcome rows (NDJSON) of the spans of traces: one row a trace; it failed if it had an "
        "error or its root was slower than the normal p99 of its operation. "
        "Example: manage.py convert spans --normal calm.csv.gz --input bad.csv.gz --out mine.ndjson"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("format", choices=["spans"], help="what the files hold")
        parser.add_argument(
            "--normal",
            action="append",
            default=[],
            metavar="FILE",
            help="spans of fault-free time (.csv, .csv.gz)",
        )
        parser.add_argument("--input", action="append", default=[], metavar="FILE", help="spans to convert")
        parser.add_argument("--out", metavar="FILE", help="where the rows go (default: standard output)")
        parser.add_argument(
            "--operation",
            choices=["entry", "root"],
            default="entry",
            help="compare traces by the operation of the root, or also by the first on another instance",
        )
        parser.add_argument(
            "--ending",
            metavar="TIME",
            help="shift all times so that the last row is at TIME (RFC 3339, or now)",
        )

    def work(self, **options: Any) -> None:
        if not options["input"]:
            raise Refused("--input FILE is missing: which spans should be converted?")
        if not options["normal"]:
            raise Refused("--normal FILE is missing: without fault-free spans nobody knows what is slow")
        ending = _moment(options["ending"])
        normal = spans.learn(_traces(options["normal"], spans.Holes()), options["operation"])
        holes = spans.Holes()
        judged = _traces(options["input"], holes)
        if not judged:
            raise Refused(f"there is no trace with a root in {', '.join(options['input'])}")
        shift = timedelta(0) if ending is None else ending - spans.instant(judged[-1].root.start)
        rows = spans.path_outcomes(judged, normal, holes, shift)
        _write(options["out"], rows)
        self._report(rows, holes)

    def _report(self, rows: list[dict[str, Any]], holes: spans.Holes) -> None:
        slow = sum(row["failures"] for row in rows)
        self.note(f"{holes.spans} spans, {holes.traces} traces, {len(rows)} rows, {slow} of them failed")
        for sentence in holes.sentences():
            self.note(sentence)


def _traces(files: list[str], holes: spans.Holes) -> list[spans.Trace]:
    found: list[spans.Span] = []
    tell = progress("reading")
    for name in files:
        tell(name)
        try:
            found += spans.parse(_payload(name))
        except spans.BadSpans as error:
            raise Refused(f"{name}: {error}") from error
    tell("")
    return spans.traces(found, holes)


def _payload(name: str) -> bytes:
    try:
        payload = Path(name).read_bytes()
    except OSError as error:
        raise Refused(f"{name}: cannot be read: {error.strerror}") from error
    if not name.endswith(".gz"):
        return payload
    try:
        return gzip.decompress(payload)
    except (OSError, EOFError, zlib.error) as error:
        raise Refused(f"{name}: is not a whole gzip file: {error}") from error


def _write(name: str | None, rows: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    if name is None:
        sys.stdout.write(text)
        return
    try:
        Path(name).write_text(text)
    except OSError as error:
        raise Refused(f"{name}: cannot be written: {error.strerror}") from error


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    if text == "now":
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Refused(f"--ending {text!r}: is not a time such as 2026-03-01T12:00:00Z, nor now") from error
    if moment.tzinfo is None:
        raise Refused(f"--ending {text!r}: has no time zone")
    return moment
