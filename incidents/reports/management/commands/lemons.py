"""`manage.py lemons`: parts, batches and firmware that fail more than their peers, and repair rates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandParser
from django.db import OperationalError

from analyzers.commands import CommandFailedError, CommandInputError, LineCommand
from incidents.domain.lemons.repairs import BACK_WITHIN
from incidents.domain.values import parse_rfc3339
from incidents.reports.lemons import DAYS, LEVEL, MOST_DAYS, lemons_of
from ingest.queries import regions, watermark

Json = Mapping[str, Any]


class Command(LineCommand):
    help = (
        "Compare parts (nodes, GPUs, NICs, disks), batches and firmware with their peers over the"
        " recorded telemetry and incidents, and count repairs without a fault found. Exit 0, even"
        " with too little data."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=int, default=DAYS, help=f"1 to {MOST_DAYS}; default {DAYS}")
        parser.add_argument("--end", metavar="T", help="end of the window, RFC 3339; default: now")
        parser.add_argument("--region", action="append", default=[], help="only this region; repeatable")
        parser.add_argument(
            "--level", type=float, default=LEVEL, help=f"accepted share of false positives; default {LEVEL}"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def work(self, **options: Any) -> None:
        days, level = options["days"], options["level"]
        if not 1 <= days <= MOST_DAYS:
            raise CommandInputError(f"--days {days} is not in 1 to {MOST_DAYS}")
        if not 0 < level <= 0.5:
            raise CommandInputError(f"--level {level} is not above 0 and at most 0.5")
        try:
            end = parse_rfc3339(options["end"]) if options["end"] else datetime.now(UTC)
        except (ValueError, OverflowError) as error:
            raise CommandInputError(
                f"--end {options['end']}: give an RFC 3339 time such as 2026-11-21T10:00:00Z"
            ) from error
        try:
            known = regions()
            if unknown := [one for one in options["region"] if one not in known]:
                raise CommandInputError(
                    f"no telemetry of region {unknown[0]}; there is {', '.join(known) or 'none'}"
                )
            upto = watermark()
            found = [lemons_of(region, end, upto, days, level) for region in options["region"] or known]
        except OperationalError as error:
            raise CommandFailedError(f"the database does not answer: {error}") from error
        if options["json"]:
            self.show([json.dumps(found, ensure_ascii=False, indent=2)])
        else:
            self.show(line for one in found for line in _lines(one))


def _lines(found: Json) -> Iterator[str]:
    yield f"region {found['region']}, {found['window']['days']} days before {found['window']['end']}"
    if not found["fleets"]:
        yield "  no failures of nodes, hosts, GPUs, NICs or disks recorded"
    for fleet in found["fleets"]:
        named = [*fleet["groups"], *fleet["lemons"]]
        yield f"  {fleet['kind']}: {fleet['judged']} of {fleet['parts']} compared, {len(named)} named"
        for one in named:
            interval = f"[{one['low']:g}, {one['high']:g}]"
            yield f"    {one['name']}: {one['ratio']:g} times its peers {interval}, q {one['q_value']:g}"
        for source, reason in fleet["thin"].items():
            yield f"    {source}: too thin, {reason}"
    for one in found["repairs"]:
        yield (
            f"  {one['name']}: {one['incidents']} resolved, no fault found in {one['no_fault_found']}, back within"
            f" {BACK_WITHIN.days} days {one['came_back']}"
        )
