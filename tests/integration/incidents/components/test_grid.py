"""The grid over telemetry that came through the endpoint: numbers, marks, drilling, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from incidents import commands
from incidents.commands import Report
from ingest.api import keys
from ingest.queries import Context
from ingest.telemetry.windows import path_sums

pytestmark = pytest.mark.usefixtures("log_database")
END = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=2)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
COMPUTE, STORAGE = 3, 4


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice"))
    return client


def send(kind: str, rows: Iterable[Mapping[str, Any]]) -> None:
    key = keys.create(f"sender {kind} {datetime.now(UTC)}", ["telemetry"])
    answer = Client().post(
        f"/api/v1/telemetry/{kind}",
        json.dumps(list(rows)),
        "application/json",
        HTTP_AUTHORIZATION=f"Bearer {key}",
    )
    assert answer.status_code == 202, answer.content


def placed(unit: int, at: datetime = END - 30 * HOUR, **more: Any) -> dict[str, Any]:
    compute, storage = unit % COMPUTE, unit // COMPUTE % STORAGE
    components = [f"compute_cluster/c{compute}", f"tor/c{compute}-t{unit % 2}", f"storage_cluster/s{storage}"]
    return {"time": at.isoformat(), "unit": f"vm/{unit}", "components": components, **more}


def failed(unit: int, ago: timedelta) -> dict[str, Any]:
    return {"time": (END - ago).isoformat(), "unit": f"vm/{unit}"}


def fleet(units: int = 120) -> None:
    send("placement", [placed(unit) for unit in range(units)])
    # Telemetry has come as far as END, and one unit that is nowhere failed.
    send(
        "unit_failure",
        [failed(0, 5 * MINUTE), failed(0, 6 * MINUTE), failed(12, 2 * HOUR), failed(999, 0 * MINUTE)],
    )


def ask(client: Client, status: int = 200, **asked: Any) -> Any:
    answer = client.get(f"/api/v1/grid?{urlencode(asked, doseq=True)}")
    assert answer.status_code == status, answer.content
    return answer.json()


def of_cell(told: Mapping[str, Any], step: int, row: str, column: str) -> int:
    at = told["rows"]["names"].index(row) * len(told["columns"]["names"]) + told["columns"]["names"].index(
        column
    )
    sparse = told["failed"][step]
    return sum(n for cell, n in zip(sparse["cells"], sparse["values"], strict=True) if cell == at)


def test_a_cell_counts_the_units_that_failed_in_a_step_once(alice: Client) -> None:
    fleet()
    told = ask(alice, steps=3, end=END.isoformat())
    assert (told["rows"]["names"], len(told["columns"]["names"])) == (
        [f"compute_cluster/c{n}" for n in range(3)],
        4,
    )
    assert [of_cell(told, step, "compute_cluster/c0", "storage_cluster/s0") for step in range(3)] == [0, 1, 1]
    assert told["carried"][0] == [10] * 12


def test_failures_of_units_that_are_nowhere_are_said_apart(alice: Client) -> None:
    fleet()
    assert ask(alice, steps=2, end=(END + MINUTE).isoformat())["unplaced"] == [0, 1]


def test_units_that_come_and_go_count_where_they_were_at_the_start_of_a_step(alice: Client) -> None:
    fleet()
    send(
        "placement",
        [placed(1000, END - 90 * MINUTE), placed(12, END - 30 * MINUTE, active=False, components=[])],
    )
    told = ask(alice, steps=3, end=END.isoformat())
    assert told["carried"][1] == {"cells": [], "values": []}
    assert sum(told["carried"][2]["values"]) == 11  # vm/1000 came in the second step, vm/12 left in the third
    later = ask(alice, steps=1, window=5, end=END.isoformat())
    assert sum(later["carried"][0]) == 120


def test_what_arrives_late_is_in_the_next_answer(alice: Client) -> None:
    fleet()
    before = ask(alice, steps=2, end=END.isoformat())
    send("unit_failure", [failed(3, 7 * MINUTE)])
    after = ask(alice, steps=2, end=END.isoformat())
    assert sum(after["failed"][1]["values"]) == sum(before["failed"][1]["values"]) + 1


def test_a_drill_shows_the_kind_beneath(alice: Client) -> None:
    fleet()
    told = ask(alice, steps=1)
    assert told["rows"]["finer"] == "tor"
    beneath = ask(alice, steps=1, rows="tor", within="compute_cluster/c1")
    assert beneath["rows"]["names"] == ["tor/c1-t0", "tor/c1-t1"]


def test_attempts_along_paths_make_a_grid_too(alice: Client) -> None:
    row = {
        "time": (END - 3 * MINUTE).isoformat(),
        "components": ["leaf/1", "spine/2"],
        "attempts": 50,
        "failures": 5,
    }
    send("path_outcome", [row, row, {**row, "components": ["leaf/2", "spine/1"], "failures": 0}])
    told = ask(alice, steps=1, end=END.isoformat())
    assert (told["telemetry"], told["carried"][0]) == ("path_outcome", [0, 100, 50, 0])
    assert told["failed"][0] == {"cells": [1], "values": [10]}


def test_tickets_mark_what_they_suspect_from_when_it_was_opened(alice: Client) -> None:
    fleet()
    number = commands.open_incident(
        Report("Disks time out", component="storage_cluster/s2"), Context("user:bob")
    ).incident.number
    told = ask(alice, steps=2, window=5, end=(datetime.now(UTC) + MINUTE).isoformat())
    assert [one["number"] for one in told["marks"][1]] == [number]
    assert told["marks"][0] == []


def test_the_page_lists_what_is_worst_without_any_script(alice: Client) -> None:
    fleet()
    page = alice.get("/grid", {"end": END.isoformat()}).content.decode()
    assert "<h1>compute_cluster × storage_cluster</h1>" in page
    assert "within=compute_cluster%2Fc0" in page
    drilled = alice.get(
        "/grid", {"rows": "tor", "within": "compute_cluster/c0", "side": "r"}
    ).content.decode()
    assert "<h1>tor × storage_cluster</h1>" in drilled
    assert 'href="/grid?rows=compute_cluster' in drilled


def test_without_telemetry_the_page_says_what_to_send(alice: Client) -> None:
    assert "No telemetry of paths yet" in alice.get("/grid").content.decode()
    assert ask(alice)["telemetry"] is None


def test_a_time_of_which_nothing_is_known_is_empty_and_not_wrong(alice: Client) -> None:
    fleet()
    assert "No data for this grid" in alice.get("/grid", {"end": "2020-01-01T00:00:00Z"}).content.decode()


REFUSED = (
    {"rows": "tor", "columns": "tor"},
    {"rows": "unheard_of"},
    {"rows": "\0"},
    {"window": "7"},
    {"steps": "99999999999999999999"},
    {"steps": "0"},
    {"end": "noon"},
    {"end": "0001-01-01T00:00:00Z"},
    {"at": "9999-12-31T23:59:59+14:00"},
    {"within": "nothing"},
    {"within": [f"tor/{n}" for n in range(9)]},
    {"telemetry": "probe"},
    {"region": "\0"},
)


def test_what_makes_no_sense_is_refused_by_name(alice: Client) -> None:
    fleet(12)
    for asked in REFUSED:
        assert next(iter(asked)) in str(ask(alice, 400, **asked)["errors"]) or asked.get("rows") == "tor"
        assert alice.get("/grid", asked).status_code == 400
    assert "colour" in str(ask(alice, 400, colour="red")["errors"])


def test_sums_that_take_too_long_are_given_up_and_said_so(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet(12)
    monkeypatch.setattr(path_sums, "_RECORDED", "pg_sleep(9) IS NOT NULL")
    monkeypatch.setattr(path_sums, "TIMEOUT", 0.1)
    assert "shorter window" in ask(alice, 503)["detail"]
    assert "shorter window" in alice.get("/grid").content.decode()


def test_the_grid_is_for_those_who_may_read_tickets() -> None:
    key = keys.create("nobody's", ["telemetry"])
    assert Client().get("/api/v1/grid").status_code == 401
    assert Client().get("/api/v1/grid", HTTP_AUTHORIZATION=f"Bearer {key}").status_code == 403
    assert Client().get("/grid").status_code == 302
