"""Real packets through a small fabric on this machine, something broken in it, and the probes sent to Dossier."""

from __future__ import annotations

import json
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from deploy.demo.sender import RequestRejectedError, Sender
from deploy.lab import plan
from deploy.lab.faults import Fault, broken
from deploy.lab.namespaces import LabBuildError, clean, fabric, why_not
from deploy.lab.probing import PATHS, Row, prober

DEFAULTS = {"none": "", "loss": "link/leaf1~spine1", "down": "link/leaf1~spine1"}
MOST_SECONDS = 300
PAUSE = 1.0
"""Seconds from round to round."""


class Command(BaseCommand):
    help = (
        "Build a leaf-spine fabric from network namespaces, inject a fault, probe every path with"
        " real packets, and write the probes to a Dossier or to a file. Needs root; removes the"
        " fabric at the end."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--fault", choices=sorted(DEFAULTS), default="loss")
        parser.add_argument(
            "--on",
            default=None,
            metavar="COMPONENT",
            help="component that fails: link/leaf1~spine1, switch/spine2, …",
        )
        parser.add_argument(
            "--loss",
            type=int,
            default=30,
            metavar="PERCENT",
            help="packet loss per direction in percent (1 to 100)",
        )
        parser.add_argument(
            "--seconds", type=int, default=20, help=f"duration in seconds (1 to {MOST_SECONDS})"
        )
        parser.add_argument("--probes", type=int, default=10, help="packets per path and second (1 to 20)")
        parser.add_argument(
            "--out", type=Path, default=None, metavar="FILE", help="append the rows to this NDJSON file"
        )
        parser.add_argument("--url", default=None, help="send the rows to the Dossier at this address")
        parser.add_argument("--key", default="", help="integration key with the scope `telemetry`")
        parser.add_argument("--clean", action="store_true", help="only remove the remains of a killed lab")

    def handle(self, *_: Any, **options: Any) -> None:
        reason = why_not()
        if reason is not None:
            raise CommandError(reason, returncode=2)
        try:
            if options["clean"]:
                self.stdout.write(f"removed {clean()} namespaces")
                return
            fault = _fault(options)
            self._run(fault, _outlets(options), options["seconds"], options["probes"])
        except (LabBuildError, RequestRejectedError) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self.stderr.write("interrupted; the fabric is removed")
            raise SystemExit(130) from None

    def _run(self, fault: Fault, outlets: list[Any], seconds: int, probes: int) -> None:
        self.stdout.write(f"building {len(plan.NODES)} namespaces and {len(plan.CABLES)} links")
        with fabric(), prober() as prober_, broken(fault) as how:
            self.stdout.write(f"{how}; probing {len(PATHS)} paths, {probes} packets each, for {seconds} s")
            began = time.monotonic()
            sent = lost = 0
            while (now := time.monotonic()) < began + seconds:
                rows = prober_.round(probes)
                for outlet in outlets:
                    outlet(rows)
                sent += sum(row["sent"] for row in rows)
                lost += sum(row["lost"] for row in rows)
                time.sleep(max(0.0, now + PAUSE - time.monotonic()))
        self.stdout.write(f"{sent} packets sent, {lost} lost; the fabric is removed")


def _fault(options: dict[str, Any]) -> Fault:
    for name, low, high in (("loss", 1, 100), ("seconds", 1, MOST_SECONDS), ("probes", 1, 20)):
        if not low <= options[name] <= high:
            raise CommandError(f"--{name} {options[name]}: give {low} to {high}", returncode=2)
    component = options["on"] or DEFAULTS[options["fault"]]
    if options["fault"] != "none":
        try:
            plan.component(component)
        except ValueError as error:
            raise CommandError(f"--on: {error}", returncode=2) from error
    return Fault(options["fault"], component, options["loss"])


def _outlets(options: dict[str, Any]) -> list[Any]:
    """Destinations of rows: functions of a list of rows."""
    found: list[Any] = []
    if options["out"] is not None:
        found.append(lambda rows: _append(options["out"], rows))
    if options["url"] is not None:
        sender = Sender(options["url"].rstrip("/"), options["key"], threading.Event())
        found.append(lambda rows: sender.post_rows("probe", rows, f"lab-{uuid.uuid4()}"))
    if not found:
        raise CommandError("--out FILE, or --url ADDRESS with --key KEY, is required", returncode=2)
    return found


def _append(path: Path, rows: list[Row]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
