"""Writes a scenario: telemetry files by kind and a `truth.json` that says what was planted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from analyzers.runs.management.line_command import CommandInputError, LineCommand, progress


class Command(LineCommand):
    help = (
        "Write a scenario: one NDJSON file per telemetry kind, and truth.json. Without a scenario, list them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "scenario", nargs="?", metavar="SCENARIO", help="name of the scenario; without one, a list"
        )
        parser.add_argument(
            "--seed", type=int, default=0, metavar="N", help="the same seed gives the same files (0)"
        )
        parser.add_argument("--out", type=Path, metavar="DIR", help="output directory; made if missing")
        parser.add_argument(
            "--event",
            default="",
            metavar="NAME",
            help="harmless event in a healthy scenario",
        )
        parser.add_argument("--force", action="store_true", help="write into a directory that is not empty")

    def work(self, **options: Any) -> None:
        from analyzers.simulators.scenarios import SCENARIOS

        name, seed, out = options["scenario"], options["seed"], options["out"]
        if name is None:
            self.show(
                line
                for one in SCENARIOS.values()
                for line in (
                    f"{one.name}  {one.title}",
                    f"    {one.help}",
                    *([f"    --event {', '.join(one.events)}"] if one.events else ()),
                )
            )
            return
        if name not in SCENARIOS:
            raise CommandInputError(f"no scenario {name!r}; there are {', '.join(SCENARIOS)}")
        if seed < 0:
            raise CommandInputError(f"--seed {seed}: must be 0 or more")
        if options["event"] not in ("", *SCENARIOS[name].events):
            known = ", ".join(one.name for one in SCENARIOS.values() if options["event"] in one.events)
            raise CommandInputError(
                f"{name} has no event {options['event']!r}; it is known to {known or 'no scenario'}"
            )
        if out is None:
            raise CommandInputError("--out DIR is missing: where should the files go?")
        _make(out, options["force"])
        tell = progress(f"simulating {name} with seed {seed}:")
        tell("…")
        try:
            written = SCENARIOS[name].write(seed, out, options["event"])
        except OSError as error:
            raise CommandInputError(f"{out}: cannot write there: {error.strerror}") from error
        tell("")
        self.show(f"{path}  {path.stat().st_size:,} bytes" for path in written)
        self.show(_planted(out / "truth.json"))


def _make(out: Path, force: bool) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        occupied = any(out.iterdir())
    except OSError as error:
        raise CommandInputError(f"{out}: not a directory to write to: {error.strerror}") from error
    if occupied and not force:
        raise CommandInputError(f"{out} is not empty; --force writes into it all the same")


def _planted(truth: Path) -> list[str]:
    contents = json.loads(truth.read_text())
    planted = [f"planted: {fault['component']}" for fault in contents["faults"]]
    return planted + [f"happened: {event['kind']}" for event in contents["benign"]]
