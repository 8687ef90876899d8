"""Writes a scenario: telemetry files by kind and a `truth.json` that says what was planted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from analyzers.runs.management.line_command import CommandInputError, LineCommand, progress

TRAFFIC = "traffic"
TRAFFIC_HELP = (
    "Arrivals of requests composed per client: rate, burstiness and sizes by client and ten minutes."
)
TRAFFIC_OPTIONS = {
    "clients": "number of clients (200)",
    "seconds": "length in seconds (3,600)",
    "rate": "mean arrivals per second of all clients (20)",
    "cv": "median coefficient of variation of a client's times between arrivals (2)",
    "size": "median rows or alerts of an arrival (4)",
}


class Command(LineCommand):
    help = (
        "Write a scenario: one NDJSON file per telemetry kind, and truth.json. Without a scenario, list them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "scenario", nargs="?", metavar="SCENARIO", help="name of the scenario; without one, a list"
        )
        parser.add_argument(
            "--seed", type=int, default=0, metavar="N", help="random seed; equal seeds give equal files (0)"
        )
        parser.add_argument("--out", type=Path, metavar="DIR", help="output directory; created if missing")
        parser.add_argument(
            "--event",
            default="",
            metavar="NAME",
            help="harmless event in a healthy scenario",
        )
        for name, help_text in TRAFFIC_OPTIONS.items():
            parser.add_argument(f"--{name}", type=float, metavar="X", help=f"traffic: {help_text}")
        parser.add_argument(
            "--poisson", action="store_true", help="traffic: memoryless arrivals with the same means"
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
            self.show([f"{TRAFFIC}  Arrivals for load tests", f"    {TRAFFIC_HELP}"])
            return
        given = {one: options[one] for one in TRAFFIC_OPTIONS if options[one] is not None}
        if name == TRAFFIC:
            self._traffic(given, options)
            return
        if given or options["poisson"]:
            first = next(iter(given), "poisson")
            raise CommandInputError(f"--{first} is for {TRAFFIC} alone")
        if name not in SCENARIOS:
            raise CommandInputError(f"no scenario {name!r}; there are {', '.join(SCENARIOS)}, {TRAFFIC}")
        _check_seed(seed)
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

    def _traffic(self, given: dict[str, Any], options: dict[str, Any]) -> None:
        """Write `arrivals.ndjson` and what it is like as `truth.json`."""
        import numpy as np

        from analyzers.simulators.traffic import Plan, composed, poisson, rows_of

        _check_seed(options["seed"])
        if options["event"]:
            raise CommandInputError(f"{TRAFFIC} has no event {options['event']!r}")
        if options["out"] is None:
            raise CommandInputError("--out DIR is missing: where should the files go?")
        try:
            whole = {"clients": int(given["clients"])} if "clients" in given else {}
            plan = Plan(**{**given, **whole})
        except (ValueError, OverflowError) as error:
            raise CommandInputError(f"{TRAFFIC}: {error}") from None
        _make(options["out"], options["force"])
        rng = np.random.default_rng([options["seed"], 61])
        arrivals = composed(plan, rng)
        if options["poisson"]:
            arrivals = poisson(plan, rng, arrivals)
        truth = {
            "scenario": TRAFFIC,
            "seed": options["seed"],
            "poisson": options["poisson"],
            "arrivals": len(arrivals.at),
            "rows": int(arrivals.size.sum()),
            "dispersion_1s": round(arrivals.dispersion(1.0), 3),
            "dispersion_60s": round(arrivals.dispersion(60.0), 3),
            "top_10_share": round(arrivals.top_share(10), 4),
        }
        files = {
            options["out"] / "arrivals.ndjson": "".join(json.dumps(row) + "\n" for row in rows_of(arrivals)),
            options["out"] / "truth.json": json.dumps(truth, indent=2) + "\n",
        }
        for path, text in files.items():
            try:
                path.write_text(text)
            except OSError as error:
                raise CommandInputError(f"{path}: cannot write there: {error.strerror}") from error
            self.show([f"{path}  {len(text):,} bytes"])


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise CommandInputError(f"--seed {seed}: must be 0 or more")


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
