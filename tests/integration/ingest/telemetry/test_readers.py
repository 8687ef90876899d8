"""Both readers of windows, in SQL and in numpy, give the same bytes for the same rows."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.queries import read_window
from ingest.telemetry.decode.builder import Assembly
from ingest.telemetry.decode.columns import Bounds, Rows
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store.write import Delivery, receive
from ingest.telemetry.windows.offline import reduce
from ingest.telemetry.windows.reductions import (
    STILL_GOING,
    AsOf,
    Count,
    CountDistinct,
    CountWitnesses,
    Each,
    Input,
    Paths,
    Reduction,
    Sum,
)
from ingest.telemetry.windows.sums import dumps, loads

pytestmark = pytest.mark.usefixtures("log_database")

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
END = START + timedelta(hours=1)
PLACED = AsOf("placement", "unit")
EVERYTHING = Input(
    "everything",
    (
        Reduction(
            "units",
            "placement",
            ("components",),
            {"units": CountDistinct("unit"), "hosts": CountWitnesses(), "rows": Count()},
            witness_kinds=("host",),
        ),
        Reduction(
            "failures",
            "unit_failure",
            ("components",),
            {"units": CountDistinct("unit"), "hosts": CountWitnesses(), "symptoms": CountDistinct("symptom")},
            as_of=PLACED,
            witness_kinds=("host",),
            slice=timedelta(minutes=7),
        ),
        Reduction("symptoms", "unit_failure", ("symptom", "components"), {"n": Count()}, as_of=PLACED),
        Reduction(
            "witnesses", "unit_failure", ("unit",), {"tors": CountWitnesses()}, PLACED, ("tor", "host")
        ),
        Reduction(
            "paths",
            "path_outcome",
            ("components",),
            {
                "attempts": Sum("attempts"),
                "failures": Sum("failures"),
                "weight": Sum("weight"),
                "rows": Count(),
                "failed": CountDistinct("time", where="failures"),
                "hosts": CountWitnesses(where="failures"),
            },
            witness_kinds=("host",),
        ),
        Reduction(
            "whole sets",
            "path_outcome",
            ("components",),
            {"weight": Sum("weight")},
            slice=timedelta(seconds=1),
        ),
        Reduction("failed", "path_outcome", (), {"n": Count(), "w": Sum("weight")}, where="failures"),
        Reduction(
            "by slice", "path_outcome", (), {"paths": CountDistinct("components")}, slice=timedelta(minutes=1)
        ),
        Reduction("topology", "topology", ("parents", "labels"), {"n": Count()}),
        Reduction("places", "topology", ("component", "parents"), {"n": Count()}, or_within=True),
        Reduction("ever placed", "placement", ("unit", "components"), {"n": Count()}, or_within=True),
        Reduction("probes", "probe", ("hops", "src", "layer", "sent"), {"lost": Sum("lost"), "n": Count()}),
        Reduction("delays", "probe", ("src", "hops"), {"n": Count()}, each=Each("rtt_us", (1.0, 2.0, 4.0))),
        Reduction("lost", "probe", ("dst",), {"n": Count()}, where="lost", each=Each("rtt_us")),
        Reduction("samples", "benchmark", ("node", "sku"), {"n": Count()}, each=Each("values")),
        Reduction("outages", "outage", ("device", "start", "end", "cause", "planned"), {"n": Count()}),
        Reduction("downs", "uptime", ("state", "hops_class"), {"units": CountDistinct("unit"), "n": Count()}),
        Reduction("spans", "span", ("trace", "span", "parent", "duration_us", "error"), {"n": Count()}),
        Reduction(
            "traces", "span", ("service",), {"traces": CountDistinct("trace"), "us": Sum("duration_us")}
        ),
        Reduction("placed downs", "uptime", ("components", "state"), {"n": Count()}, as_of=PLACED),
        Reduction("seen", "observation", ("subject", "status", "score"), {"n": Count()}),
        Reduction("incidents", "node_incident", ("node", "covariates", "time"), {"n": Count()}),
        Reduction("logs", "log_count", ("component", "template", "severity"), {"n": Sum("count")}),
        Reduction("levels", "metric", ("name", "labels"), {"n": Count(), "total": Sum("value")}),
        Reduction(
            "endpoints", "endpoint", ("endpoint", "time", "rail", "tenant"), {"n": Count()}, or_within=True
        ),
        Reduction("changes", "endpoint", ("endpoint", "time", "active"), {"n": Count()}, changes=True),
        Reduction("rules", "flow_rule", ("element", "match", "next", "layer"), {"n": Count()}),
        Reduction(
            "operations",
            "collective",
            ("communicator", "seq", "rank", "src", "start_ns", "end_ns", "state", "ranks", "node"),
            {"bytes": Sum("bytes")},
        ),
        Reduction("profiles", "function_profile", ("worker", "cls", "beta", "mu", "sigma"), {"n": Count()}),
        Reduction(
            "planned",
            "change",
            ("change", "time", "kind", "targets", "author", "team", "settings", "measures"),
            {"n": Count()},
        ),
        Reduction("became", "change_outcome", ("change", "time", "outcome", "incident"), {"n": Count()}),
        Reduction("attempts", "job_attempt", ("nodes", "outcome", "start", "end"), {"n": Count()}),
        Reduction(
            "ended",
            "job_attempt",
            ("nodes",),
            {"n": Count()},
            only=("outcome", ("completed", "failed")),
            slice=timedelta(minutes=7),
        ),
        Reduction(
            "half", "collective", ("rank",), {"n": Count()}, only=("state", ("started",)), where="bytes"
        ),
        Reduction("traffic", "nic_traffic", ("nic", "rail", "time"), {"tx": Sum("tx_bytes")}),
        Reduction("samples of series", "metric", ("labels", "time", "value"), {"n": Count()}),
    ),
)

names = st.sampled_from(
    ["host/1", "host/2", "host/10", "tor/a", "tor/ä", "tor/b", "store/x", "store/z", "hosting/1"]
)
members = st.lists(names, min_size=1, max_size=4)
units = st.sampled_from([f"vm/{i}" for i in range(8)])
# Around the window's ends, on and beside the borders of slices, and with few values, so that times meet.
times = st.sampled_from(
    [START + timedelta(microseconds=shift) for shift in (-3_600_000_000, -1, 0, 1, 419_999_999, 420_000_000)]
    + [END + timedelta(microseconds=shift) for shift in (-60_000_001, -1, 0, 5)]
)
weights = st.floats(0, 1e9, allow_nan=False) | st.sampled_from([0.1, 0.2, 0.3, 1e-9, 1e16])
# From a start before the window: over before it, just as it begins, in it, and after it.
lengths = st.sampled_from(
    [timedelta(microseconds=1), timedelta(hours=1), timedelta(hours=1, microseconds=1), timedelta(hours=3)]
)


def lasting(row: dict[str, Any]) -> dict[str, Any]:
    """The row with an end instead of how long it lasts."""
    lasts = row["lasts"]
    ended = {"end": None if lasts is None else row["start"] + lasts}
    return {name: value for name, value in row.items() if name != "lasts"} | ended


def begun(row: dict[str, Any]) -> dict[str, Any]:
    """The row with a start instead of how long it lasted."""
    return {name: value for name, value in row.items() if name != "lasts"} | {
        "start": row["end"] - row["lasts"]
    }


ROWS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "path_outcome": st.fixed_dictionaries(
        {
            "time": times,
            "components": members,
            "attempts": st.just(9),
            "failures": st.integers(0, 2),
            "weight": weights,
        }
    ),
    "placement": st.fixed_dictionaries(
        {
            "time": times,
            "unit": units,
            "components": members,
            "active": st.sampled_from([True, True, True, False]),
        }
    ),
    "unit_failure": st.fixed_dictionaries(
        {"time": times, "unit": units, "symptom": st.sampled_from(["", "disk", "nic"])}
    ),
    "topology": st.fixed_dictionaries(
        {
            "time": times,
            "component": names,
            "parents": members | st.just([]),
            "labels": st.sampled_from([{}, {"a": "b"}]),
        }
    ),
    "probe": st.fixed_dictionaries(
        {
            "time": times,
            "src": names,
            "dst": names,
            "sent": st.just(3),
            "lost": st.integers(0, 2),
            "rtt_us": st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.9, 4.0, 1e9]), max_size=3),
            "hops": members | st.just([]),
            "layer": st.sampled_from(["underlay", "overlay", None]),
        }
    ),
    "benchmark": st.fixed_dictionaries(
        {
            "time": times,
            "node": names,
            "benchmark": st.just("gemm"),
            "metric": st.just("fp16"),
            "values": st.lists(st.floats(-1e9, 1e9, allow_nan=False), min_size=1, max_size=4),
            "sku": st.sampled_from(["a", None]),
        }
    ),
    "outage": st.fixed_dictionaries(
        {
            "start": times,
            "device": names,
            "lasts": lengths | st.none(),
            "cause": st.sampled_from(["soft", "hard"]),
            "planned": st.sampled_from([None, True]),
        }
    ).map(lasting),
    "uptime": st.fixed_dictionaries(
        {
            "start": times,
            "unit": units,
            "lasts": lengths,
            "state": st.sampled_from(["up", "down"]),
            "hops_class": st.sampled_from(["near", "far", None]),
        }
    ).map(lasting),
    "observation": st.fixed_dictionaries(
        {
            "time": times,
            "observer": names,
            "subject": names,
            "context": st.just("put"),
            "status": st.sampled_from(["healthy", "unhealthy", "pending"]),
            "score": weights | st.none(),
        }
    ),
    "span": st.fixed_dictionaries(
        {
            "time": times,
            "trace": st.sampled_from(
                ["4BF92F3577B34DA6A3CE929D0E0E4736", "00f067aa0ba902b7", "request ä", "1"]
            ),
            "span": st.sampled_from(["00f067aa0ba902b7", "f067aa0ba902b7", "ab"]),
            "parent": st.sampled_from([None, "", "0000000000000000", "ab"]),
            "service": st.sampled_from(["cart", "store"]),
            "instance": st.just("cart-1"),
            "operation": st.just("GET /"),
            "duration_us": weights,
            "error": st.booleans(),
        }
    ),
    "log_count": st.fixed_dictionaries(
        {
            "time": times,
            "component": st.sampled_from(["instance/cart-1", "service/cart"]),
            "template": st.sampled_from(["took <*> ms", ""]),
            "severity": st.sampled_from(["info", "error", None]),
            "count": st.integers(1, 2**31 - 1),
        }
    ),
    "node_incident": st.fixed_dictionaries(
        {
            "time": times,
            "node": names,
            "kind": st.just("ecc"),
            "covariates": st.sampled_from([None, {}, {"age": 2.0, "b": 0.1}, {"b": 0.1, "age": 2.0}]),
        }
    ),
    "metric": st.fixed_dictionaries(
        {
            "time": times,
            "name": st.sampled_from(["load", "temperature"]),
            "labels": st.sampled_from([None, {}, {"host": "a", "ä": "ö"}, {"ä": "ö", "host": "a"}]),
            "value": weights | weights.map(operator.neg),
        }
    ),
}
ROWS |= {
    "endpoint": st.fixed_dictionaries(
        {
            "time": times,
            "endpoint": names,
            "job": st.just("j"),
            "host": names,
            "nic": names,
            "rail": st.integers(0, 2),
            "tenant": st.sampled_from(["", "7", None]),
            "active": st.sampled_from([True, None, False]),
        }
    ),
    "flow_rule": st.fixed_dictionaries(
        {
            "time": times,
            "element": names,
            "match": names,
            "next": names | st.sampled_from(["", None]),
            "layer": st.sampled_from(["vswitch", "nic"]),
        }
    ),
    "collective": st.fixed_dictionaries(
        {
            "time": times,
            "job": st.just("j"),
            "communicator": st.sampled_from(["dp0", "tp1"]),
            "seq": st.integers(0, 3),
            "op": st.just("all_reduce"),
            "rank": st.integers(0, 3),
            "src": st.sampled_from([None, -1, 0, 1]),
            "bytes": weights | st.none(),
            "start_ns": st.sampled_from([None, 1_772_366_400_000_000_512.0]),
            "end_ns": st.sampled_from([None, 1_772_366_400_000_001_024.0]),
            "state": st.sampled_from(["scheduled", "started", "completed"]),
            "ranks": st.sampled_from([None, 4]),
            "node": st.sampled_from([None, "node/1"]),
        }
    ),
    "function_profile": st.fixed_dictionaries(
        {
            "time": times,
            "job": st.just("j"),
            "worker": names,
            "role": st.just("pp0"),
            "function": st.just("gemm"),
            "cls": st.sampled_from(["compute", "memory", "collective", "python"]),
            "beta": st.floats(0, 1),
            "mu": weights,
            "sigma": weights,
        }
    ),
    "change": st.fixed_dictionaries(
        {
            "time": times,
            "change": st.sampled_from(["c1", "c2"]),
            "kind": st.just("config"),
            "targets": members | st.sampled_from([[], None]),
            "author": st.sampled_from(["alice", "", None]),
            "settings": st.sampled_from([None, {}, {"ttl": "30", "a": "x"}]),
            "measures": st.sampled_from([None, {}, {"rollout": 0.5, "lines": 3.0}]),
        }
    ),
    "change_outcome": st.fixed_dictionaries(
        {
            "time": times,
            "change": st.sampled_from(["c1", "c2"]),
            "outcome": st.sampled_from(["good", "incident", "rolled_back"]),
            "incident": st.sampled_from(["17", "", None]),
        }
    ),
    "job_attempt": st.fixed_dictionaries(
        {
            "end": times,
            "job": st.just("j"),
            "nodes": members,
            "lasts": lengths,
            "outcome": st.sampled_from(["completed", "failed", "cancelled", "preempted"]),
        }
    ).map(begun),
    "nic_traffic": st.fixed_dictionaries(
        {
            "time": times,
            "job": st.just("j"),
            "host": names,
            "nic": names,
            "rail": st.integers(0, 2),
            "tx_bytes": weights,
        }
    ),
}
OUTAGES = Input("outages", (Reduction("outages", "outage", ("device", "start", "end"), {"n": Count()}),))
worlds = st.fixed_dictionaries({kind: st.lists(row, max_size=25) for kind, row in ROWS.items()})
World = Mapping[str, list[dict[str, Any]]]


def table(kind: str, rows: list[dict[str, Any]], region: str) -> Rows:
    assembly = Assembly(KINDS[kind], region)
    columns = {field.name: [row.get(field.name) for row in rows] for field in KINDS[kind].all_fields}
    assembly.add(columns, np.arange(1, len(rows) + 1))
    return assembly._joined() if not rows else assembly.rows(Bounds())


def store(kind: str, rows: list[dict[str, Any]], region: str) -> None:
    if rows:
        receive(table(kind, rows, region), Delivery("test", bytes(32), 1))


regions_used = itertools.count()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(world=worlds, cut=st.integers(0, 25))
def test_both_readers_find_the_same(world: World, cut: int) -> None:
    region = f"region {next(regions_used)}"
    for kind, rows in world.items():
        store(kind, rows[:cut], region)
        store(kind, rows[cut:], region)
    tables = {kind: table(kind, rows, region) for kind, rows in world.items()}
    found = read_window(EVERYTHING, region, START, END)
    assert dumps(found) == dumps(reduce(EVERYTHING, tables, START, END))
    assert dumps(loads(dumps(found))) == dumps(found)


def _state(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The slow and obvious way to say what is in force."""
    newest: dict[str, dict[str, Any]] = {}
    for row in rows:
        held = newest.get(row["unit"])
        if row["time"] <= START and (held is None or row["time"] >= held["time"]):
            newest[row["unit"]] = row
    return {unit: row for unit, row in newest.items() if row["active"]}


@given(world=worlds)
def test_the_numpy_reader_agrees_with_the_obvious_one(world: World) -> None:
    tables = {kind: table(kind, rows, "default") for kind, rows in world.items()}
    sums = reduce(EVERYTHING, tables, START, END)["failures"]
    placed = _state(world["placement"])
    groups: dict[tuple[tuple[str, ...], int], list[dict[str, Any]]] = {}
    unmatched = 0
    for row in world["unit_failure"]:
        if not START <= row["time"] < END:
            continue
        if row["unit"] not in placed:
            unmatched += 1
            continue
        path = {name for name in placed[row["unit"]]["components"] if not name.startswith("host/")}
        groups.setdefault((tuple(sorted(path)), (row["time"] - START) // timedelta(minutes=7)), []).append(
            row
        )
    paths = sums.keys["components"]
    assert isinstance(paths, Paths)
    slices: Any = sums.keys["slice"]
    assert [(paths[i], int(slices[i])) for i in range(sums.rows)] == sorted(groups)
    assert sums.unmatched == unmatched
    for place, key in enumerate(sorted(groups)):
        rows = groups[key]
        hosts = {n for row in rows for n in placed[row["unit"]]["components"] if n.startswith("host/")}
        assert sums.values["units"][place] == len({row["unit"] for row in rows})
        assert sums.values["symptoms"][place] == len({row["symptom"] for row in rows})
        assert sums.values["hosts"][place] == len(hosts)


@given(placed=st.lists(ROWS["placement"], max_size=25))
def test_the_numpy_reader_finds_the_obvious_first_state_within_the_window(
    placed: list[dict[str, Any]],
) -> None:
    told = {(row["unit"], row["time"]): row for row in placed}  # what was said last
    held = _state(placed)
    began = sorted((row for row in told.values() if START < row["time"] < END), key=lambda row: row["time"])
    later = {row["unit"]: row for row in reversed(began) if row["active"] and row["unit"] not in held}
    reduction = Reduction("units", "placement", ("unit", "components"), {"n": Count()}, or_within=True)
    sums = reduce(Input("i", (reduction,)), {"placement": table("placement", placed, "r")}, START, END)[
        "units"
    ]
    paths = sums.keys["components"]
    assert isinstance(paths, Paths)
    named: Any = sums.keys["unit"]
    found = {unit: paths[row] for row, unit in enumerate(named)}
    assert found == {u: tuple(sorted(set(row["components"]))) for u, row in (held | later).items()}
    assert sums.later == len(later)


@given(outages=st.lists(ROWS["outage"], max_size=25))
def test_the_numpy_reader_finds_the_obvious_intervals(outages: list[dict[str, Any]]) -> None:
    told = {(row["device"], row["start"]): row["end"] for row in outages}  # what was said last
    found = [
        (
            device,
            int(started.timestamp() * 1e6),
            STILL_GOING if ended is None else int(ended.timestamp() * 1e6),
        )
        for (device, started), ended in told.items()
        if started < END and (ended is None or ended > START)
    ]
    keys = reduce(OUTAGES, {"outage": table("outage", outages, "r")}, START, END)["outages"].keys
    listed = [key if isinstance(key, tuple) else np.asarray(key).tolist() for key in keys.values()]
    assert list(zip(*listed, strict=True)) == sorted(found)


@given(probes=st.lists(ROWS["probe"], max_size=25))
def test_the_numpy_reader_puts_numbers_into_the_obvious_bins(probes: list[dict[str, Any]]) -> None:
    edges = (1.0, 2.0, 4.0)
    binned: dict[tuple[str, int], int] = {}
    for row in probes:
        for number in row["rtt_us"] if START <= row["time"] < END else ():
            place = row["src"], sum(edge <= number for edge in edges)
            binned[place] = binned.get(place, 0) + 1
    delays = Reduction("delays", "probe", ("src",), {"n": Count()}, each=Each("rtt_us", edges))
    sums = reduce(Input("i", (delays,)), {"probe": table("probe", probes, "r")}, START, END)["delays"]
    bins = np.asarray(sums.keys["bin"]).tolist()
    sources: Any = sums.keys["src"]
    assert dict(zip(zip(sources, bins, strict=True), sums.values["n"].tolist(), strict=True)) == binned
    assert sources == tuple(name for name, _ in sorted(binned))


def test_an_unknown_region_has_empty_sums() -> None:
    sums = read_window(EVERYTHING, "nowhere", START, END)
    assert all(one.rows == 0 for one in sums.values())


def test_a_window_is_read_also_where_statements_are_recorded() -> None:
    with CaptureQueriesContext(connection) as recorded:  # as DOSSIER_DEBUG=1 does
        sums = read_window(EVERYTHING, "nowhere", START, END)
    assert all(one.rows == 0 for one in sums.values())
    assert any("COPY" in one["sql"] for one in recorded)
