"""Cost of regions for each other: sums of a window beside those of a database that holds that region alone, the rate
of bodies beside that of tables with the index by time that they had before, and windows at a position beside those
without one.

Cost is time of the processor in the session's server, so that other work on the machine does not count; all three
databases are on one server, and what is compared is measured in turns. HTTP and decoding are left out, which would hide
a difference.

    python -m tests.benchmarks.regions [--trials REGIONS]
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django
import numpy as np

from deploy.embedded import Home, start_postgres, stop
from tests.benchmarks.script import script

if TYPE_CHECKING:
    from ingest.queries import Position
    from ingest.telemetry.decode.columns import Rows

REGIONS = 100
BODY = 5_000
BODIES = 8
"""Bodies of each region."""
PATHS = 6_144
ROUNDS = 5
RECEIPTS = 3_000_000
HOUR = timedelta(hours=1)
START = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - 2 * HOUR
REGION = "region-7"
Row = dict[str, Any]


def main(trials: int = REGIONS) -> list[Row]:
    """Rows of name, value, unit, bar and a note. Takes about three minutes with 100 regions."""
    with cluster("regions"):
        from django.db import connection

        together = str(connection.settings_dict["NAME"])
        connection.close()
        for name in ("alone", "before"):
            _change("postgres", f'CREATE DATABASE {name} TEMPLATE "{together}"')
        _change(
            "before",
            "DROP INDEX telemetry_path_outcome_place;"
            ' CREATE INDEX telemetry_path_outcome_time ON telemetry_path_outcome USING brin ("time")',
        )
        rates = fill(together, trials)
        _change("before", "DROP TABLE telemetry_path_outcome")
        return [rates, windows(together, trials), positions()]


@contextmanager
def cluster(name: str, **environment: str) -> Iterator[None]:
    """A cluster of our own with all tables, which this process is connected to; gone afterwards."""
    home = Home(Path(os.environ.get("DOSSIER_HOME", ".dossier")).absolute() / "bench" / name)
    home.forget()
    server = start_postgres(home, settings={"shared_buffers": "512MB", "max_wal_size": "4GB"})
    os.environ.update(
        DJANGO_SETTINGS_MODULE="deploy.settings",
        DOSSIER_HOME=str(home.root),
        DATABASE_URL=home.database_url,
        **environment,
    )
    try:
        django.setup()
        from django.core.management import call_command
        from django.db import connections

        call_command("migrate", verbosity=0)
        yield
        connections.close_all()
    finally:
        stop(server)
        home.forget()


def fill(together: str, regions: int) -> Row:
    """Store bodies of all regions in turns; the rate with the index beside the rate without."""
    from ingest.telemetry.store.write import Delivery, receive

    took: dict[str, list[float]] = {together: [], "before": []}
    for body in range(BODIES):
        rows = [one_body(f"region-{number}", body) for number in range(regions)]
        for name in (together, "before") if body % 2 else ("before", together):
            began = cost(name)
            for one in rows:
                receive(one, Delivery("bench", bytes(32), 1))
            took[name].append(cost(name) - began)
        cost("alone")
        receive(rows[7], Delivery("bench", bytes(32), 1))
    shares = [b / a for a, b in zip(took[together][1:], took["before"][1:], strict=True)]
    micro = 1e6 * statistics.median(took[together]) / (regions * BODY)
    return _row(
        f"rate of bodies of {BODY:,} rows of {regions} regions, against an index by time", shares, ">= 0.9",
        f"{micro:.2f} us of client and server a row",
    )  # fmt: skip


def one_body(region: str, body: int, bodies: int = BODIES) -> Rows:
    """A body of one of so many that share the hour."""
    from ingest.telemetry.decode.builder import Assembly
    from ingest.telemetry.decode.columns import Bounds
    from ingest.telemetry.kinds import KINDS

    chance = np.random.default_rng((body, int(region.partition("-")[2])))
    assembly = Assembly(KINDS["path_outcome"], region)
    step = HOUR / bodies
    ahead = np.sort(chance.random(BODY)).tolist()
    assembly.add(
        {
            "time": [START + step * (body + share) for share in ahead],
            "components": [
                [f"host/h{path % 512}", f"tor/t{path % 12}"] for path in chance.integers(0, PATHS, BODY)
            ],
            "attempts": [10] * BODY,
            "failures": chance.integers(0, 3, BODY).tolist(),
            "weight": [None] * BODY,
            "region": [None] * BODY,
        },
        np.arange(1, BODY + 1),
    )
    return assembly.rows(Bounds())


def windows(together: str, regions: int) -> Row:
    """Three sums of one region's hour."""
    took: dict[str, list[float]] = {together: [], "alone": []}
    for turn in range(ROUNDS + 1):
        for name in (together, "alone") if turn % 2 else ("alone", together):
            began = cost(name)
            read()
            took[name].append(cost(name) - began)
    shares = [a / b for a, b in zip(took[together][1:], took["alone"][1:], strict=True)]
    return _row(
        f"sums of one region of {regions}, against the region alone", shares, "<= 2",
        f"{1000 * statistics.median(took['alone']):.0f} ms for {BODIES * BODY:,} rows alone",
    )  # fmt: skip


def positions() -> Row:
    """Windows at a position among many receipts of the region."""
    from ingest.queries import Position

    _change(
        "alone",
        "INSERT INTO telemetry_receipt SELECT -i, gen_random_uuid(), kind, region, 1, first - i * interval '1 second',"
        " last - i * interval '1 second', received_at, epoch, txid, seq FROM telemetry_receipt,"
        f" generate_series(1, {RECEIPTS}) AS i WHERE number = (SELECT min(number) FROM telemetry_receipt);"
        " VACUUM ANALYZE telemetry_receipt",
    )
    cost("alone")
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT epoch, txid::text, seq FROM telemetry_receipt ORDER BY epoch, txid DESC LIMIT 1"
        )
        epoch, txid, seq = cursor.fetchone()
    newest = Position(epoch, int(txid), seq)
    took: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(ROUNDS + 1):
        for at_position in (True, False) if turn % 2 else (False, True):
            began = cost("alone")
            read(newest if at_position else None)
            took[at_position].append(cost("alone") - began)
    shares = [a / b for a, b in zip(took[True][1:], took[False][1:], strict=True)]
    return _row(
        f"a window at a position among {RECEIPTS:,} receipts, against none", shares, "<= 1.15",
        f"{BODIES * BODY:,} rows",
    )  # fmt: skip


def read(upto: Position | None = None) -> None:
    from analyzers.builtin.deepview import ANALYZER
    from ingest.queries import read_window

    attempts = next(one for one in ANALYZER.inputs if "path_outcome" in one.kinds)
    read_window(attempts, REGION, START, START + HOUR, upto)


def cost(database: str) -> float:
    """Seconds of the processor that this process and its session with a database have used.

    Each database has one session, which the next statement goes to: what is compared is not the begin of sessions.
    """
    from django.db import connection

    if (before := connection.settings_dict["NAME"]) != database:
        _sessions[before] = connection.connection
        connection.connection = _sessions.pop(database, None)
        connection.settings_dict["NAME"] = database
    if connection.connection is None:
        with connection.cursor() as cursor:
            cursor.execute("SET max_parallel_workers_per_gather = 0")
    pid = connection.connection.info.backend_pid
    # In nanoseconds; /proc/PID/stat counts hundredths of a second, and a turn takes ten of them.
    used = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    return time.process_time() + used / 1e9


_sessions: dict[str, Any] = {}
"""Sessions with the databases that are not connected to at the moment."""


def _change(database: str, statements: str) -> None:
    from django.db import connection

    connection.close()
    connection.settings_dict["NAME"] = database
    with connection.cursor() as cursor:
        for statement in statements.split(";"):
            cursor.execute(statement)


def _row(name: str, shares: list[float], bar: str, note: str) -> Row:
    return {
        "name": name,
        "value": round(statistics.median(shares), 2),
        "unit": "x",
        "bar": bar,
        "note": f"{min(shares):.2f} to {max(shares):.2f} in {len(shares)} turns; {note}",
    }


if __name__ == "__main__":
    script(lambda trials, _: main(trials), REGIONS, 0)
