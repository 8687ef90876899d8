"""The console with 10,000 open incidents, a million resolved ones and ten million events: server, browser,
200 watchers.

Server time of a page is taken in one process, in turns with the bare query of its rows through a cursor. What a person
waits for is asked of Chromium itself: largest paint, time the page was blocked, layout shift. Then 200 consoles are
open (streams that ask for an incident's row on a change, as the console does; some of them real ones), incidents are
acknowledged, and the clock runs from the commit to the pixels.

    python -m tests.benchmarks.console [OPEN RESOLVED EVENTS]
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from tests.benchmarks.apart import Row, rows_of

OPEN, RESOLVED, EVENTS = 10_000, 1_000_000, 10_000_000
LOADS, TURNS, WATCHERS, REAL, CHANGES = 10, 40, 200, 4, 10
UNITS, CLUSTERS, STORAGE = 20_000, 16, 12
HOUR, GRID_STEPS = timedelta(hours=1), 12
PASSWORD = "correct horse battery staple"
PEOPLE = ("alice", *(f"watcher{number}" for number in range(8)))
"""The first looks, the others have the many open consoles: one person alone may not have all of them."""


def main(open_: int = OPEN, resolved: int = RESOLVED, events: int = EVENTS) -> list[Row]:
    """Rows of name, value, unit, bar and a note. Takes about ten minutes, most of it to make the events."""
    return rows_of("console", open_, resolved, events)


def inside(open_: int, resolved: int, events: int) -> list[Row]:
    """All figures, in a process whose settings lead to the benchmark's database."""
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    ticket = _world(open_, resolved, events)
    sizes = f"{open_:,} open, {resolved:,} resolved, {events:,} events"
    rows = list(_server(ticket, sizes))
    from tests.benchmarks.console_browser import browser_rows

    return [*rows, *browser_rows(ticket)]


def _world(open_: int, resolved: int, events: int) -> int:
    """The number of an incident that an analyzer opened and a few people worked on; all others are rows like it."""
    from django.contrib.auth import get_user_model
    from django.db import connection

    from incidents import commands
    from ingest.queries import Context
    from tests.benchmarks.incidents import copies
    from tests.browser import content

    for name in PEOPLE:
        get_user_model().objects.create_superuser(name, f"{name}@example.com", PASSWORD)
    ticket = content.report_finding()
    id_ = content.ticket_id(ticket)
    for turn in range(20):
        commands.comment(id_, f"Looked at path {turn}.", Context("user:alice"))
    _region()
    copies(open_, "open", 10**7)
    copies(resolved, "resolved", 10**8)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO log_event (stream, version, type, schema, body, actor, occurred_at, recorded_at, hash)"
            " SELECT 'bench/' || n / 100, 1 + mod(n, 100), 'incident.commented', 1, '{\"text\": \"as often\"}',"
            " 'user:bob', now(), now(), sha256(int8send(n)) FROM generate_series(0, %s - 1) AS n",
            (events,),
        )
        cursor.execute("VACUUM ANALYZE incident, log_event")
        # Those that are opened from now on stand above the copies.
        cursor.execute("ALTER SEQUENCE incident_number RESTART 900000000")
    return ticket


def _region() -> None:
    """A day of a region as large as the demo's: what the grid sums."""
    from django.test import Client, override_settings

    from ingest.api import keys

    begin = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(days=1)
    placed = [
        {
            "time": begin.isoformat(),
            "unit": f"vm/{unit}",
            "components": [
                f"compute_cluster/c{unit % CLUSTERS}",
                f"tor/c{unit % CLUSTERS}-t{unit // CLUSTERS % 8}",
                f"storage_cluster/s{unit // 7 % STORAGE}",
            ],
        }
        for unit in range(UNITS)
    ]
    failed = [
        {
            "time": (begin + timedelta(minutes=minute)).isoformat(),
            "unit": f"vm/{(minute * 7919 + turn * 104_729) % UNITS}",
        }
        for minute in range(1, 1439)
        for turn in range(14)
    ]
    key = keys.create("telemetry", ["telemetry"])
    with override_settings(ALLOWED_HOSTS=["*"]):
        for kind, rows in (("placement", placed), ("unit_failure", failed)):
            body = "\n".join(json.dumps(row) for row in rows)
            answer = Client().post(
                f"/api/v1/telemetry/{kind}", body, "application/x-ndjson", HTTP_AUTHORIZATION=f"Bearer {key}"
            )
            assert answer.status_code == 202, answer.content


# Server time
# ----------------------------------------------------------------------------------------------------------
def _server(ticket: int, sizes: str) -> Iterator[Row]:
    from django.contrib.auth import get_user_model
    from django.test import Client, override_settings

    client = Client()
    client.force_login(get_user_model().objects.get(username=PEOPLE[0]))
    pages = {name: ([path] * TURNS, _query(sql)) for name, (path, sql) in _lists(ticket).items()}
    ends = [f"/grid?{urlencode({'end': _end(turn).isoformat()})}" for turn in range(TURNS)]
    pages |= {"grid, kept sums": (["/grid"] * TURNS, _sums), "grid, new window": (ends, _sums)}
    with override_settings(ALLOWED_HOSTS=["*"]):
        for name, (paths, bare) in pages.items():
            _fetched(client, paths[0])
            took, alone = list[float](), list[float]()
            for turn, path in enumerate(paths):
                took.append(_seconds(partial(_fetched, client, path)))
                alone.append(_seconds(partial(bare, turn)))
            (page_50, page_95), (bare_50, bare_95) = _quantiles(took), _quantiles(alone)
            note = f"p50 {1e3 * page_50:.0f}, p95 {1e3 * page_95:.0f} ms; bare query {1e3 * bare_50:.1f}, "
            note += f"{1e3 * bare_95:.1f} ms; {sizes}"
            yield _row(f"{name}: server time p95 against its bare query's", page_95 / bare_95, "x", note)
            yield _row(f"{name}: server time p95", page_95, "s", "")


def _lists(ticket: int) -> dict[str, tuple[str, str]]:
    """The address of a page, and the query of its rows."""
    inbox = (
        "SELECT * FROM incident WHERE state IN ('open', 'acknowledged', 'snoozed')"
        " ORDER BY severity_rank, quiet, number DESC LIMIT 51"
    )
    found = (
        "SELECT * FROM incident WHERE state <> 'resolved' AND (title ILIKE '%t77%' OR component ILIKE '%t77%')"
        " ORDER BY severity_rank, quiet, number DESC LIMIT 51"
    )
    one = f"SELECT * FROM log_event WHERE stream = (SELECT 'incident/' || id FROM incident WHERE number = {ticket})"
    return {
        "inbox": ("/", inbox),
        "search": ("/?q=t77", found),
        "ticket": (f"/incidents/{ticket}", one),
    }


def _query(sql: str) -> Callable[[int], object]:
    from django.db import connection

    def bare(_: int) -> object:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    return bare


def _end(turn: int) -> datetime:
    """An end of a window for each turn, none of which was asked for before."""
    return datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=5 + turn)


def _sums(turn: int) -> object:
    """Work of Postgres for a grid that nobody asked for before."""
    from ingest.telemetry.windows.pair_grid import Steps
    from ingest.telemetry.windows.path_sums import _failed, _placed
    from ingest.telemetry.windows.sql import region_number

    steps = Steps(_end(turn) - GRID_STEPS * HOUR, HOUR, GRID_STEPS)
    return _placed(region_number("default"), steps), _failed(region_number("default"), steps)


def _fetched(client: Any, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 200, (path, response.status_code)


def _seconds(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def _quantiles(times: list[float]) -> tuple[float, float]:
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


def _row(name: str, value: float, unit: str, note: str) -> Row:
    return {"name": name, "value": round(value, 4), "unit": unit, "bar": None, "note": note}


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        print(json.dumps(inside(*map(int, sys.argv[2:5]))))
    else:
        for row in main(*map(int, sys.argv[1:4])):
            print(f"{row['name']:<60} {row['value']:>10,} {row['unit']}  {row['note']}")
