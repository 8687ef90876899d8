"""From rows at the door to the places that show a verdict, for analyzers of services and changes: run, incident, pages,
API, report, the same rows offline; and wrong rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client

from analyzers.queries import judge_span
from analyzers.registry import get
from analyzers.runs.requests import RunRequest, request_run
from analyzers.simulators.changes import metrics, risk
from analyzers.simulators.services.application import Fault, Preset, rows_of, run, topology_of
from incidents import queries
from incidents.follower import follower
from ingest.api import keys
from ingest.queries import watermark
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, MINUTE, NOW, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Case:
    """Rows by kind in order of posting; the window that is judged; what is named; a row that is none. `severity` is
    that of the incident, None where a run by hand opens none: a change of level and a forecast take two windows of a
    schedule. `alone` is the status of the window without those before it, as a report judges its period."""

    rows: Rows
    start: datetime
    end: datetime
    named: str
    severity: str | None
    wrong: tuple[str, Mapping[str, Any], str]
    alone: str = "named"


def changepoint() -> Case:
    made = metrics.fleet(np.random.default_rng([3, 1]), "step", services=6, hours=3)
    start = TOP + HOUR - (made.minutes - made.window) * MINUTE
    rows = [one for one in metrics.rows_of(made, start) if one["name"] == "cpu_usage"]
    wrong = ({**rows[0], "value": "much"}, "value")
    return Case(
        {"metric": rows}, TOP + HOUR, TOP + 2 * HOUR, f"service/{made.name(made.at)}", None,
        ("metric", *wrong), "inconclusive",
    )  # fmt: skip


def metric_blame() -> Case:
    faults = (Fault("delay", 5, 6.0, 3060.0, 3600.0),)
    made = run(Preset(services=8, seconds=3600), np.random.default_rng(1), faults)
    start = TOP + 50 * MINUTE
    rows = list(rows_of(made, TOP))
    wrong = ({**rows[0], "labels": {"service": 3}}, "labels")
    return Case(
        {"topology": list(topology_of(made, TOP)), "metric": rows}, start, start + 10 * MINUTE, made.name(5), "error",
        ("metric", *wrong), "inconclusive",
    )  # fmt: skip


def config_risk() -> Case:
    rates = risk.Rates(changes=400, usual=0.02, wide=0.95, evening=0.02, noise=0.0)
    rows = risk.history(1, True, rates)[0]
    last = max(datetime.fromisoformat(one["time"]) for one in rows["change"])
    moved = {
        kind: [
            {**one, "time": (datetime.fromisoformat(one["time"]) + (NOW - MINUTE - last)).isoformat()}
            for one in of_kind
        ]
        for kind, of_kind in rows.items()
    }
    wrong = ({**moved["change"][0], "targets": ["nowhere"]}, "targets")
    return Case(
        moved,
        NOW - timedelta(days=7),
        NOW,
        f"change/{risk.PLANNED}",
        None,
        ("change", *wrong),
        "inconclusive",
    )


@pytest.mark.parametrize("make", [changepoint, metric_blame, config_risk])
def test_rows_become_a_run_an_incident_pages_answers_and_a_report(
    make: Callable[[], Case], tmp_path: Path
) -> None:
    name, case = make.__name__, make()
    door = Door()
    for kind, rows in case.rows.items():
        door.post(rows, kind=kind)
    request_run(RunRequest(name, start=case.start, end=case.end), "alice", NOW)
    (judged,) = work()
    assert (judged.status, [one["component"] for one in judged.blamed]) == ("named", [case.named])
    follow_to_the_end(follower())
    opened = [(one.incident.component, one.incident.severity) for one in queries.list_incidents().items]
    assert opened == ([(case.named, case.severity)] if case.severity else [])

    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    for address in (f"/runs/{judged.pk}", f"/analyzers/{name}", *["/incidents/1"] * len(opened)):
        page = alice.get(address)
        assert (page.status_code, name in page.content.decode()) == (200, True), address
    assert case.named in alice.get(f"/runs/{judged.pk}").content.decode()

    key = keys.create("reader", ["incidents:read"])

    def read(path: str) -> Any:
        return Client().get(f"/api/v1/{path}", headers={"authorization": f"Bearer {key}"}).json()

    assert read(f"runs/{judged.pk}")["verdict"]["suspects"][0]["component"] == case.named
    if opened:
        pieces = read("incidents/1/evidence")["results"]
        assert {(one["run"], one["analyzer"]) for one in pieces} == {(str(judged.pk), name)}

    reported = judge_span(get(name), {}, "default", case.start, case.end, watermark())
    assert reported is not None
    assert (reported["status"], reported["analyzer"]) == (case.alone, name)
    assert bool(reported["reason"]) is (case.alone == "inconclusive")
    assert [one["component"] for one in reported["suspects"]] == [case.named] * (case.alone == "named")

    _is_refused_if_wrong(door, case)
    _is_the_same_offline(name, case, tmp_path)


def _is_refused_if_wrong(door: Door, case: Case) -> None:
    kind, row, field = case.wrong
    answer = door.client.post(
        f"/api/v1/telemetry/{kind}", json.dumps(row), content_type="application/x-ndjson"
    )
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert (error["row"], error["field"].split(".")[0]) == (1, field)


def _is_the_same_offline(name: str, case: Case, tmp_path: Path) -> None:
    """All rows in one window, or the last of the windows that they are cut into."""
    inputs = []
    for kind, rows in case.rows.items():
        path = tmp_path / f"{kind}.ndjson"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        inputs.append(f"--input={kind}={path}")
    length = round((case.end - case.start) / MINUTE)
    cut = [f"--every={length}m"] if length < 24 * 60 else []
    out = StringIO()
    call_command("analyze", name, *inputs, *cut, "--json", stdout=out)
    named = {
        suspect["component"]
        for verdict in map(json.loads, out.getvalue().splitlines() if cut else [out.getvalue()])
        for suspect in verdict["suspects"]
    }
    assert case.named in named
    inputs[-1] += ".gone"
    with pytest.raises(SystemExit) as refused:
        call_command("analyze", name, *inputs, *cut, stdout=out)
    assert refused.value.code == 2
