"""Old telemetry in Parquet beside Postgres: bytes of a row, and the processor's time for the sums of a window.

Rows as a fleet sends them: paths of hosts and switches with other rates each, times that no body shares. Cost is that
of this process and of the session's server, measured in turns over the same rows; the windows' bytes are compared.

    python -m tests.benchmarks.cold [--trials BODIES]
"""

from __future__ import annotations

import statistics
import tempfile
from datetime import timedelta
from typing import Any

import numpy as np

from tests.benchmarks.regions import HOUR, REGION, ROUNDS, START, cluster, cost, one_body
from tests.benchmarks.script import script

BODIES = 400
"""Of 5,000 rows each."""
Row = dict[str, Any]


def main(trials: int = BODIES) -> list[Row]:
    """Rows of name, value, unit, bar and a note. Takes about three minutes."""
    with tempfile.TemporaryDirectory() as files, cluster("cold", DOSSIER_TELEMETRY_COLD=files):
        from django.db import connection

        from analyzers.builtin.deepview import ANALYZER
        from ingest.queries import dump_sums, now_utc, read_window
        from ingest.telemetry.cold.move import move_old
        from ingest.telemetry.store.write import Delivery, receive

        database = str(connection.settings_dict["NAME"])
        attempts = next(one for one in ANALYZER.inputs if "path_outcome" in one.kinds)
        for body in range(trials):
            receive(one_body(REGION, body, trials), Delivery("bench", bytes(32), 1))
        heap = _one("SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits"
                    " WHERE inhparent = 'telemetry_path_outcome'::regclass")  # fmt: skip
        read: dict[str, list[float]] = {"postgres": [], "files": []}
        found: dict[str, bytes] = {}
        for place in read:
            for _ in range(ROUNDS + 1):
                began = cost(database)
                found[place] = dump_sums(read_window(attempts, REGION, START, START + HOUR))
                read[place].append(cost(database) - began)
            if place == "postgres":
                began = cost(database)
                moved = move_old(now_utc() + timedelta(hours=3), timedelta(hours=1))
                writing = cost(database) - began
        if found["postgres"] != found["files"]:
            raise AssertionError("a window has other bytes over files")
        shares = np.divide(read["files"][1:], statistics.median(read["postgres"][1:]))
        return [
            _row("bytes of a row of path_outcome in a file", moved.bytes / moved.rows, "bytes", "<= 12",
                 f"{heap / moved.rows:.1f} in Postgres; {moved.rows:,} rows, moved at"
                 f" {1e6 * writing / moved.rows:.2f} us a row"),
            _row("sums over files, against Postgres", float(np.median(shares)), "x", "<= 0.6",
                 f"{shares.min():.2f} to {shares.max():.2f} in {ROUNDS} turns;"
                 f" {statistics.median(read['postgres'][1:]):.2f} s in Postgres; same bytes"),
        ]  # fmt: skip


def _one(query: str) -> float:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(query)
        return float(cursor.fetchone()[0])


def _row(name: str, value: float, unit: str, bar: str, note: str) -> Row:
    return {"name": name, "value": round(value, 2), "unit": unit, "bar": bar, "note": note}


if __name__ == "__main__":
    script(lambda trials, _: main(trials), BODIES, 0)
