"""Runs, analyzers and their schedules over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from analyzers import registry
from analyzers.runs.models import Run, Schedule
from ingest.api import keys
from tests.integration.analyzers.runs.cases import HOUR, TOP, Door, healthy, work

pytestmark = pytest.mark.usefixtures("log_database", "tally")
WINDOW = {"start": TOP.isoformat(), "end": (TOP + HOUR).isoformat()}
SCHEDULE = {"name": "night", "analyzer": "tally", "length": "1h", "every": "5m"}


class Api:
    """The API as a script with a key sees it."""

    def __init__(self, *scopes: str) -> None:
        secret = keys.create("script", scopes)
        self.client = Client(headers={"Authorization": f"Bearer {secret}"})

    def get(self, path: str) -> Any:
        return self.client.get(f"/api/v1/{path}")

    def send(self, method: str, path: str, body: object = None) -> Any:
        call = getattr(self.client, method)
        return call(f"/api/v1/{path}", body or {}, content_type="application/json")


@pytest.fixture
def api(log_database: str) -> Api:  # noqa: ARG001
    Door().post(healthy(a=9))
    return Api("admin")


def run(api: Api, **changes: object) -> dict[str, Any]:
    """Ask for a run, do it, and read it."""
    answer = api.send("post", "runs", {"analyzer": "tally", "window": WINDOW, **changes})
    assert answer.status_code == 202, answer.content
    work()
    found: dict[str, Any] = api.get(f"runs/{answer.json()['id']}").json()
    return found


def test_the_analyzers_are_listed_with_inputs_and_parameters(api: Api) -> None:
    found = {one["name"]: one for one in api.get("analyzers").json()["results"]}
    assert found["tally"]["inputs"][0] == {"name": "outcomes", "kinds": ["path_outcome"]}
    assert "deepview" in found


def test_a_run_by_hand_is_queued_and_then_readable_whole(api: Api) -> None:
    found = run(api)
    assert (found["state"], found["status"]) == ("done", "named")
    assert found["verdict"]["suspects"][0]["component"] == "tor/a"
    assert found["requested_by"] == "key:script"
    assert found["late_rows"] == []


def test_the_answer_says_where_the_run_will_be(api: Api) -> None:
    answer = api.send("post", "runs", {"analyzer": "tally", "window": WINDOW})
    assert answer["Location"] == f"/api/v1/runs/{answer.json()['id']}"
    assert answer.json()["state"] == "queued"


def test_a_length_written_as_a_span_is_understood(api: Api) -> None:
    answer = api.send("post", "runs", {"analyzer": "tally", "length": "30m"})
    assert answer.status_code == 202


def test_a_re_run_says_that_it_is_identical(api: Api) -> None:
    first = run(api)
    answer = api.send("post", f"runs/{first['id']}/rerun")
    work()
    again = api.get(f"runs/{answer.json()['id']}").json()
    assert (again["repeats"], again["identical"]) == (first["id"], True)
    assert {**again["verdict"], "measures": 0} == {**first["verdict"], "measures": 0}


def test_a_run_without_a_verdict_is_not_repeated(api: Api) -> None:
    failed = run(api, params={"crash": True})
    answer = api.send("post", f"runs/{failed['id']}/rerun")
    assert answer.status_code == 409
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"analyzer": "talli"}, "analyzer"),
        ({"params": {"share": "much"}}, "params"),
        ({"length": "an hour"}, "length"),
        ({"window": {"start": "yesterday", "end": "now"}}, "window"),
        ({"input": "x"}, "input"),
        ({"wndow": 1}, "wndow"),
        ({"history": -1}, "history"),
        ({"region": "a\0b"}, "region"),
        ({"region": "\ud800"}, "region"),
        ({"params": {"share": "\0"}}, "params"),
        ({"window": {"start": "0001-01-01T00:00:00Z", "end": "0001-01-02T00:00:00Z"}}, "window"),
    ],
)
def test_a_request_that_is_wrong_is_told_in_which_field(
    api: Api, wrong: dict[str, object], field: str
) -> None:
    answer = api.send("post", "runs", {"analyzer": "tally", "window": WINDOW, **wrong})
    assert answer.status_code == 400
    assert field in answer.json()["errors"]
    assert Run.objects.count() == 0


def test_runs_are_listed_newest_first_in_pages(api: Api) -> None:
    made = [run(api)["id"] for _ in range(3)]
    page = api.get("runs?limit=2").json()
    assert [one["id"] for one in page["results"]] == made[:0:-1]
    rest = api.client.get(page["next"]).json()
    assert [one["id"] for one in rest["results"]] == made[:1]
    assert rest["next"] is None


def test_runs_are_filtered(api: Api) -> None:
    run(api)
    failed = run(api, params={"crash": True})
    assert [one["id"] for one in api.get("runs?state=failed").json()["results"]] == [failed["id"]]
    assert api.get("runs?colour=red").status_code == 400


@pytest.mark.parametrize("cursor", ["x", "cD1mb28=", "cD0A"])
def test_a_cursor_that_was_made_up_is_an_error(api: Api, cursor: str) -> None:
    assert api.get(f"runs?cursor={cursor}").status_code == 400
    assert api.get(f"analysis_schedules?cursor={cursor}").status_code == 400


def test_a_filter_that_no_text_can_match_is_refused(api: Api) -> None:
    assert api.get("runs?region=%00").status_code == 400
    assert api.get("analysis_schedules/%00").status_code == 404


def test_an_unknown_run_is_a_404(api: Api) -> None:
    assert api.get(f"runs/{uuid4()}").status_code == 404
    assert api.get("runs/7").status_code == 404


def test_a_key_reads_and_writes_only_with_the_scope_for_it(api: Api) -> None:  # noqa: ARG001
    keys.revoke("script")
    reader = Client(headers={"Authorization": f"Bearer {keys.create('reader', ['incidents:read'])}"})
    assert reader.get("/api/v1/runs").status_code == 200
    assert reader.post("/api/v1/runs", {}, content_type="application/json").status_code == 403
    assert Client().get("/api/v1/runs").status_code == 401


def test_a_schedule_is_made_changed_and_deleted(api: Api) -> None:
    made = api.send("post", "analysis_schedules", SCHEDULE)
    assert made.status_code == 201, made.content
    assert made.json()["grace"] == "30s"
    changed = api.send("patch", "analysis_schedules/night", {"every": "10m", "enabled": False})
    assert (changed.json()["every"], changed.json()["enabled"]) == ("10m", False)
    assert api.send("delete", "analysis_schedules/night").status_code == 204
    assert not Schedule.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"analyzer": "nobody"}, "analyzer"),
        ({"params": {"share": 7}}, "params"),
        ({"params": [1]}, "params"),
        ({"every": "0s"}, "every"),
        ({"every": "-5m"}, "every"),
        ({"length": "60d"}, "length"),
        ({"name": "Night Watch"}, "name"),
        ({"history": 999}, "history"),
        ({"evry": "5m"}, "evry"),
    ],
)
def test_a_schedule_that_could_not_run_is_refused(api: Api, wrong: dict[str, object], field: str) -> None:
    answer = api.send("post", "analysis_schedules", {**SCHEDULE, **wrong})
    assert answer.status_code == 400
    assert field in answer.json()["errors"]


def test_the_name_of_a_schedule_is_permanent(api: Api) -> None:
    api.send("post", "analysis_schedules", SCHEDULE)
    answer = api.send("patch", "analysis_schedules/night", {"name": "day"})
    assert "refer to schedules by name" in answer.json()["errors"]["name"][0]


def test_a_schedule_is_changed_by_an_admin_only(api: Api) -> None:  # noqa: ARG001
    writer = Client(headers={"Authorization": f"Bearer {keys.create('writer', ['incidents:write'])}"})
    answer = writer.post("/api/v1/analysis_schedules", SCHEDULE, content_type="application/json")
    assert answer.status_code == 403


def test_a_new_installation_watches_with_three_window_lengths(log_database: str) -> None:  # noqa: ARG001
    deepview = Schedule.objects.filter(analyzer="deepview").order_by("length")
    assert [str(one.length) for one in deepview] == ["1:00:00", "6:00:00", "1 day, 0:00:00"]


def test_every_schedule_of_a_new_installation_has_an_installed_analyzer(log_database: str) -> None:  # noqa: ARG001
    assert {one.analyzer for one in Schedule.objects.all()} <= set(registry.installed())
