"""Incidents: a command to its commit, many hands on one incident, long lists, and the rebuild of all read models.

In one process on a Postgres of its own with fsync on, without HTTP. A command is timed in turns with a bare INSERT of
one small row in a transaction of its own; lists of 10,000 open incidents are read alone and with a million
resolved ones behind them (rows copied by the server: what a list reads is only rows); a rebuild is timed
against a plain scan of the same log, once where nothing differs and once where every row was lost.

    python -m tests.benchmarks.incidents [OPEN RESOLVED]
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

from tests.benchmarks.apart import Row, rows_of

OPEN, RESOLVED = 10_000, 1_000_000
COMMANDS, CROWD, LISTS = 100, 64, 40
HISTORY = 3_000
"""Incidents of seven events each, that are rebuilt."""


def main(open_: int = OPEN, resolved: int = RESOLVED) -> list[Row]:
    """Rows of name, value, unit, bar and a note. Takes about five minutes, most of it to make the incidents."""
    return rows_of("incidents", open_, resolved)


def inside(open_: int, resolved: int) -> list[Row]:
    """All figures, in a process whose settings lead to the benchmark's database."""
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    return [*_commands(), *_crowd(), *_rebuilt(), *_lists(open_, resolved)]


# Commands
# ----------------------------------------------------------------------------------------------------------
def _opened(number: int) -> str:
    from incidents import commands
    from ingest.queries import Context

    report = commands.Report(f"Rack {number} loses packets", component=f"tor/dc1-t{number}")
    return commands.open_incident(report, Context("user:alice")).incident.id


def _commands() -> Iterator[Row]:
    from django.db import connection

    from incidents import commands
    from ingest.queries import Context

    alice, bare = Context("user:alice"), list[float]()
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL)"
        )
    timed: dict[str, list[float]] = {
        name: [] for name in ("open", "acknowledge", "comment", "hand_over", "resolve")
    }
    for turn in range(COMMANDS):
        ids: list[str] = []
        steps: dict[str, Callable[[], object]] = {
            "open": lambda turn=turn, ids=ids: ids.append(_opened(turn)),  # type: ignore[misc]
            "acknowledge": lambda ids=ids: commands.acknowledge(ids[0], alice),  # type: ignore[misc]
            "comment": lambda ids=ids: commands.comment(ids[0], "It is the optics.", alice),  # type: ignore[misc]
            "hand_over": lambda ids=ids: commands.hand_over(ids[0], "storage", "theirs", alice),  # type: ignore[misc]
            "resolve": lambda ids=ids: commands.resolve(ids[0], "none", "", alice),  # type: ignore[misc]
        }
        for name, step in steps.items():
            timed[name].append(_seconds(step))
            bare.append(_seconds(_insert))
    bare_p50, bare_p95 = _quantiles(bare)
    for name, times in timed.items():
        p50, p95 = _quantiles(times)
        note = f"p50 {1e3 * p50:.1f}, p95 {1e3 * p95:.1f} ms; bare INSERT {1e3 * bare_p50:.2f}, {1e3 * bare_p95:.2f} ms"
        yield _row(f"{name}: p50 against a bare INSERT", p50 / bare_p50, "x", None, note)
        yield _row(f"{name}: p95 against a bare INSERT's", p95 / bare_p95, "x", None, note)


def _insert() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO bare (body) VALUES (%s)", ("It is the optics.",))


# Many hands
# ----------------------------------------------------------------------------------------------------------
def _crowd() -> Iterator[Row]:
    from django.db import connection

    from incidents import commands, queries
    from ingest.queries import Context

    id_, failed = _opened(10**6), list[str]()
    ready = threading.Barrier(CROWD + 1)

    def comment(number: int) -> None:
        try:
            ready.wait()
            commands.comment(id_, f"comment {number}", Context(f"user:{number}"))
        except Exception as error:
            failed.append(repr(error))
            raise
        finally:
            connection.close()

    threads = [threading.Thread(target=comment, args=(number,)) for number in range(CROWD)]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    texts = [
        event.body["text"] for event in queries.incident_events(id_) if event.type == "incident.commented"
    ]
    note = f"{CROWD} at once on one incident in {seconds:.2f} s; {len(failed)} refused"
    yield _row("comments lost", CROWD - len(set(texts)), "", "= 0", note)
    yield _row("comments doubled", len(texts) - len(set(texts)), "", "= 0", "")


# Rebuild
# ----------------------------------------------------------------------------------------------------------
def _rebuilt() -> Iterator[Row]:
    """Of a log that is nearly all events of incidents, the worst case: everything else is only passed over."""
    from django.db import connection

    from incidents.incident.rebuild import rebuild

    _history()
    for what in ("what is right", "what was lost"):
        if what == "what was lost":
            with connection.cursor() as cursor:
                cursor.execute("TRUNCATE incident CASCADE")
        (scan, events), seconds, differed = min(_scanned() for _ in range(3)), 0.0, 0
        began = time.perf_counter()
        rebuilt = rebuild()
        seconds, differed = time.perf_counter() - began, len(rebuilt.differed)
        note = f"{events / seconds:,.0f} against {events / scan:,.0f} events/s, {rebuilt.incidents} incidents"
        bar = ">= 0.25" if what == "what is right" else None
        yield _row(f"rebuild of {what} against reading the log", scan / seconds, "x", bar, note)
        wanted = 0 if what == "what is right" else rebuilt.incidents
        yield _row(f"incidents that differed before the rebuild of {what}", differed, "", f"= {wanted}", "")


def _history() -> None:
    """A log of some length, in few transactions."""
    from django.db import transaction

    from incidents import commands
    from ingest.queries import Context

    alice = Context("user:alice")
    for start in range(0, HISTORY, 50):
        with transaction.atomic():
            for number in range(start, start + 50):
                id_ = _opened(2 * 10**6 + number)
                commands.acknowledge(id_, alice)
                for text in ("It is the optics.", "Cleaned them.", "Losses are gone."):
                    commands.comment(id_, text, alice)
                commands.hand_over(id_, "storage", "theirs", alice)
                commands.resolve(id_, "none", "", alice)


def _scanned() -> tuple[float, int]:
    """Seconds that a plain scan of the log takes, and its events. Without the collector of cycles, as a rebuild."""
    from ingest.queries import Position, read_all

    gc.disable()
    began, events, after = time.perf_counter(), 0, Position.START
    while found := read_all(after, 1_000):
        events, after = events + len(found), found[-1].position
    gc.enable()
    return time.perf_counter() - began, events


# Lists
# ----------------------------------------------------------------------------------------------------------
def _lists(open_: int, resolved: int) -> Iterator[Row]:
    from django.db import connection

    copies(open_, "open", 10**7)
    alone = dict(_read())
    copies(resolved, "resolved", 10**8)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE incident")
    for name, (p50, p95) in _read():
        before = 1e3 * alone[name][0]
        note = f"p50 {1e3 * p50:.0f}, p95 {1e3 * p95:.0f} ms; {before:.0f} ms without the resolved"
        yield _row(f"{name}, of {open_:,} open: p95", p95, "s", None, note)
        yield _row(f"{name}: p50 with {resolved:,} resolved behind", p50 / alone[name][0], "x", None, "")


def copies(count: int, state: str, first: int) -> None:
    """Rows like that of an incident, each with a number, a team and a severity of its own."""
    from django.db import connection

    from incidents.incident.models import IncidentRow

    own = {
        "id": "gen_random_uuid()",
        "number": f"{first} + n",
        "state": f"'{state}'",
        "title": "'Rack ' || n || ' loses packets'",
        "component": "'tor/dc1-t' || n",
        "cause": "ARRAY['tor/dc1-t' || n]",
        "dedup_key": f"'{state} ' || n",
        "team": "(ARRAY['network', 'storage', 'compute', 'services'])[1 + mod(n, 4)]",
        "severity": "(ARRAY['critical', 'error', 'warning', 'info'])[1 + mod(n, 4)]",
        "severity_rank": "mod(n, 4)",
        "hops": "mod(n, 7)",
        "opened_at": "now() - n * interval '1 second'",
    }
    if state == "resolved":
        own |= {"resolved_at": "now()", "resolved_by": "'user:alice'", "confirmed_cause": "'none'"}
    names = [field.column for field in IncidentRow._meta.concrete_fields]
    quoted = ", ".join(f'"{name}"' for name in names)
    chosen = ", ".join(f"({own[name]})" if name in own else f'"{name}"' for name in names)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO incident ({quoted}) SELECT {chosen}"
            " FROM (SELECT * FROM incident ORDER BY number LIMIT 1) AS one, generate_series(1, %s) AS n",
            (count,),
        )
        cursor.execute("ANALYZE incident")


def _read() -> Iterator[tuple[str, tuple[float, float]]]:
    from incidents import queries

    unresolved = queries.Filter("state", "in", ("open", "acknowledged", "snoozed"))
    network = queries.Filter("team", "in", ("network",))
    asked = {
        "most severe first": ([unresolved], "severity"),
        "of one team, most hand-overs first": ([unresolved, network], "hops"),
        "that mention `t77`, newest first": (
            [unresolved, queries.Filter("title", "search", "t77")],
            "newest",
        ),
    }
    for name, (filters, order) in asked.items():
        first = partial(queries.list_incidents, filters, order)
        yield f"page 1, {name}", _quantiles([_seconds(first) for _ in range(LISTS)])
        if name != "most severe first":
            continue
        cursor = None
        for _ in range(199):
            cursor = first(cursor).next or cursor
        far = partial(first, cursor)
        yield f"page 200, {name}", _quantiles([_seconds(far) for _ in range(LISTS)])
        then = partial(first, as_of=queries.parse_moment(_half_way()))
        yield f"page 1 as it stood then, {name}", _quantiles([_seconds(then) for _ in range(LISTS)])
    count = partial(queries.counts, most=10_000)
    yield "how many in each state", _quantiles([_seconds(count) for _ in range(LISTS)])


def _half_way() -> str:
    """A place in the log after which half of the incidents that were made by commands have changed."""
    from incidents.incident.models import IncidentRow

    made = IncidentRow.objects.filter(number__lte=COMMANDS).order_by("position").values_list("position")
    return str(made[COMMANDS // 2][0])


# ----------------------------------------------------------------------------------------------------------
def _seconds(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def _quantiles(times: list[float]) -> tuple[float, float]:
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


def _row(name: str, value: float, unit: str, bar: str | None, note: str) -> Row:
    return {"name": name, "value": round(value, 4), "unit": unit, "bar": bar, "note": note}


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        print(json.dumps(inside(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        for row in main(*map(int, sys.argv[1:3])):
            bar = f"   (bar {row['bar']})" if row["bar"] else ""
            print(f"{row['name']:<75} {row['value']:>10,} {row['unit']}{bar}  {row['note']}")
