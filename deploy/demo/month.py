"""The month before the demo: outages of its ToRs, two of which have bad firmware, and the ups and downs of units. Pure.

Sent with the inventory, with its own times: what `tor_availability` judges and what the reports of last week show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from analyzers.simulators import outages, uptimes

Row = dict[str, Any]
DAYS = 28
"""Well inside what the endpoint takes (`DOSSIER_TELEMETRY_SPARSE_RETENTION`)."""
FIRMWARE = outages.Class(monthly=0.02, batch=2, batch_monthly=30.0, upgraded=0.4, twice=0.1, days=DAYS)
UNITS = uptimes.Month(units=600, days=DAYS)


class Month:
    """Outages of `tors` from `DAYS` days before `end` until then."""

    def __init__(self, end: datetime, tors: Sequence[str], seed: int) -> None:
        self.shift = end - timedelta(days=DAYS) - outages.START
        shape = replace(FIRMWARE, devices=len(tors))
        self.record = replace(outages.draw(shape, seed), names=tuple(tors))
        self.life = uptimes.draw(UNITS, seed)

    @property
    def culprits(self) -> tuple[str, ...]:
        return self.record.culprits

    def outages(self) -> list[Row]:
        # Outages are reported when they end; a lasting one in the demo never would be.
        return [row for row in self._shifted(outages.outage_rows(self.record)) if "end" in row]

    def uptimes(self) -> list[Row]:
        return list(self._shifted(uptimes.uptime_rows(uptimes.table_of(self.life))))

    def _shifted(self, rows: Iterable[Row]) -> Iterable[Row]:
        for row in rows:
            times: Row = {name: self._later(row[name]) for name in ("start", "end") if name in row}
            yield {**row, **times}

    def _later(self, time: str) -> str:
        moved = datetime.fromisoformat(time) + self.shift
        return moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")
