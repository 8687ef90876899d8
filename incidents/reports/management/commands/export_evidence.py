"""`manage.py export_evidence N FILE`: the verdicts on an incident, with what they were made of, as one signed file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import OperationalError

from analyzers.commands import CommandFailedError, CommandInputError, LineCommand
from analyzers.queries import EvidenceExportError, evidence_key
from incidents.queries import IncidentNotFoundError, evidence_file
from ingest.queries import now_utc


class Command(LineCommand):
    help = (
        "Write the verdicts on an incident, the judged windows and their proof in the sealed log"
        " as one signed file, which `manage.py verify_evidence` checks without a server."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("number", nargs="?", metavar="N", help="number of the incident")
        parser.add_argument("file", nargs="?", metavar="FILE", help="file to write; -: stdout")
        parser.add_argument("--key", action="store_true", help="print the public key of evidence files")

    def work(self, **options: Any) -> None:
        number, file = options["number"], options["file"]
        try:
            if options["key"]:
                self.show([evidence_key()])
                return
            if number is None or file is None:
                raise CommandInputError(
                    "give the number of an incident and a file: export_evidence 12 evidence.json"
                )
            body = evidence_file(number.removeprefix("#"), now_utc())
        except (EvidenceExportError, IncidentNotFoundError) as error:
            raise CommandInputError(str(error)) from error
        except OperationalError as error:
            raise CommandFailedError(f"the database does not answer: {error}") from error
        if file == "-":
            sys.stdout.buffer.write(body)
            return
        try:
            Path(file).write_bytes(body)
        except OSError as error:
            raise CommandInputError(f"{file}: {error.strerror}") from error
        self.show([f"{file}: {len(body)} bytes, signed by {evidence_key()}"])
