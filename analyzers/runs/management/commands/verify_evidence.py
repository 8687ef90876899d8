"""Checks an evidence file: signature, inclusion in the sealed log, and each verdict by judging its window again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from analyzers.runs.management.line_command import CommandFailedError, CommandInputError, LineCommand

SEVERAL_MB = 16 * 2**20


class Command(LineCommand):
    help = (
        "Check an evidence file without database or server: its signature, its place in the"
        " sealed log, and each verdict by judging the window in the file again. Exit 0 if all"
        " possible checks succeed, 1 if one fails, 2 if the file is unreadable or a verdict"
        " cannot be judged here."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path, help="evidence file, from `Export evidence`")
        parser.add_argument(
            "--key", metavar="KEY", help="public key of the sender (`manage.py export_evidence --key`)"
        )
        parser.add_argument(
            "--seal",
            action="append",
            default=[],
            metavar="SEAL",
            help="seal noted outside, such as log@7:HASH",
        )
        parser.add_argument(
            "--seals",
            type=Path,
            metavar="FILE",
            help="file of noted seals, in the format of DOSSIER_SEAL_FILE",
        )

    def work(self, **options: Any) -> None:
        # `verify_evidence --help` answers without numpy.
        from analyzers.runs.evidence_file import MOST_BYTES, InvalidEvidenceFileError, verify

        seals = [*options["seal"], *_noted(options["seals"])]
        if bad := next((one for one in seals if not one.startswith("log@") or ":" not in one), None):
            raise CommandInputError(f"--seal {_printable(bad)}: give a seal such as log@7:HASH")
        body = _read(options["file"], MOST_BYTES)
        failed, unknown = 0, 0
        try:
            for check in verify(body, options["key"], seals):
                failed += check.holds is False
                unknown += check.holds is None
                mark = {True: "ok     ", False: "WRONG  ", None: "unknown"}[check.holds]
                self.show([f"{mark}  {_printable(check.text)}"])
        except InvalidEvidenceFileError as error:
            raise CommandInputError(f"{options['file']}: {_printable(str(error))}") from error
        if failed:
            raise CommandFailedError(f"{options['file']}: {failed} of the checks failed")
        self.show(["Everything holds." if not unknown else f"Nothing is wrong; {unknown} not checked."])


def _read(file: Path, most: int) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(most + 1)
    except OSError as error:
        raise CommandInputError(f"{file}: {error.strerror}") from error


def _noted(file: Path | None) -> list[str]:
    if file is None:
        return []
    lines = _read(file, SEVERAL_MB)[:SEVERAL_MB].decode(errors="replace").splitlines()
    try:
        return [str(json.loads(line)["seal"]) for line in lines if line.strip()]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CommandInputError(
            f"--seals {file}: not a file of noted seals (one JSON object a line)"
        ) from error


def _printable(text: str) -> str:
    """One line without what a terminal would obey: the file may be hostile."""
    return "".join(one if one.isprintable() else "?" for one in text)[:2000]
