"""Changes that rows of `change` tell of, as those that were reported: both are shown beside an incident and tested."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from analyzers.builtin.config_risk.analyzer import CHANGES
from analyzers.builtin.config_risk.records import Change, last_rows
from analyzers.builtin.stats.intervals import moment
from analyzers.contract import Input
from ingest.queries import Position, ReportedChange, names_of_changed, read_window

FROM = "telemetry"
"""Name that stands for the integration."""
_ROWS = Input("changes", (CHANGES,))
_TICK = timedelta(microseconds=1)


def change_rows(
    region: str, since: datetime, until: datetime, names: Sequence[str], upto: Position | None = None
) -> list[ReportedChange]:
    """Changes of a region that went out between two moments and are of any of these names (lower case), the latest
    first; with `upto` by the rows that were known there."""
    sums = read_window(_ROWS, region, since, until + _TICK, upto)["changes"]
    wanted = frozenset(names)
    found = [one for one in last_rows([sums]).values() if not wanted.isdisjoint(_names(one))]
    return [_reported(one) for one in sorted(found, key=lambda one: (-one.at, one.name))]


def _names(one: Change) -> list[str]:
    return names_of_changed([("component", target) for target in one.targets])


def _reported(one: Change) -> ReportedChange:
    facts = {"kind": one.kind, "team": one.team, "author": one.author}
    details = {name: text for name, text in facts.items() if text}
    details |= {f"settings.{name}": text for name, text in one.settings.items()}
    details |= {f"measures.{name}": f"{figure:g}" for name, figure in one.measures.items()}
    first = one.targets[0] if one.targets else None
    return ReportedChange(
        id=one.name,
        integration=FROM,
        summary=f"{one.name}: {one.kind}",
        source=first or "",
        component=first,
        details=details,
        links=(),
        notes=(),
        at=moment(one.at),
        received_at=None,
        receipt=None,
        targets=one.targets,
    )
