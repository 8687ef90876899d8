"""Backtests that workers do: turns, cancelling, workers that are lost, and the score that the command prints, too."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client

from analyzers import runner
from analyzers.runs.scheduler import claim_due
from incidents import commands, follower, queries
from incidents.domain.values import rfc3339
from incidents.incident.models import IncidentRow
from incidents.scorecards import requests, worker
from incidents.scorecards.models import BacktestRow
from incidents.scorecards.requests import BacktestRequest, InvalidBacktestError
from ingest.api import keys
from ingest.commands import lease
from ingest.queries import Context
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, MINUTE, NOW, TOP, Door, healthy, hourly, work

pytestmark = pytest.mark.usefixtures("log_database", "tally")
SPAN = {"start": TOP, "end": TOP + 2 * HOUR}


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def resolved(log_database: str, tally: None) -> None:  # noqa: ARG001
    """tor/a failed in the second of two hours; its incident was resolved with it."""
    endpoint = Door()
    endpoint.post(
        [*healthy(TOP, HOUR), *healthy(TOP + HOUR, HOUR, a=9), *healthy(TOP + 2 * HOUR, 3 * MINUTE)]
    )
    schedule = hourly(every=HOUR, by_arrival=False)
    while claim_due([schedule], NOW):
        work()
    follow_to_the_end(follower.follower())
    commands.resolve(queries.get("1").incident.id, "tor/a", "", Context("user:alice"))


def ask(**changes: Any) -> BacktestRow:
    asked = BacktestRequest("tally", **{**SPAN, "every": 10 * MINUTE, **changes})
    return requests.request_backtest(asked, "user:alice", now())


def after(row: BacktestRow) -> BacktestRow:
    return BacktestRow.objects.get(pk=row.pk)


def finished(row: BacktestRow) -> BacktestRow:
    while worker.turn(row.pk, now):
        pass
    return after(row)


@pytest.mark.usefixtures("resolved")
def test_it_comes_to_what_the_command_comes_to(capsys: pytest.CaptureFixture[str]) -> None:
    times = ("--from", rfc3339(TOP), "--to", rfc3339(TOP + 2 * HOUR), "--every", "10m")
    call_command("backtest", "tally", *times, "--json")
    assert finished(ask()).result == json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("resolved")
def test_every_window_is_listed_with_what_it_gave() -> None:
    row = finished(ask(every=HOUR))
    told = [(one.number, one.status, [of["names"] for of in one.suspects]) for one in row.windows.all()]
    assert told == [(1, "quiet", []), (2, "named", [["tor/a"]])]


@pytest.mark.usefixtures("resolved")
def test_a_turn_ends_after_its_time_and_the_next_goes_on() -> None:
    row = ask()
    assert worker.turn(row.pk, now, seconds=0) is True
    assert (after(row).state, after(row).done, after(row).total) == ("queued", 1, 7)
    assert finished(row).result["right"] == 1  # type: ignore[index]


@pytest.mark.usefixtures("resolved")
def test_what_is_cancelled_stops_at_its_next_window(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ask()
    judge = runner.judge

    def cancelled(*args: Any, **kwargs: Any) -> Any:
        requests.cancel(row.pk, now())
        return judge(*args, **kwargs)

    monkeypatch.setattr(runner, "judge", cancelled)
    assert worker.turn(row.pk, now, seconds=0) is False
    assert (after(row).state, after(row).done, after(row).result) == ("cancelled", 0, None)


@pytest.mark.usefixtures("resolved")
def test_what_is_over_cannot_be_cancelled() -> None:
    row = finished(ask())
    assert requests.cancel(row.pk, now()) is False
    assert after(row).state == "done"


@pytest.mark.usefixtures("resolved")
def test_a_killed_worker_is_followed_by_another_once_its_lease_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = ask()
    worker.turn(row.pk, now, seconds=0)
    monkeypatch.setattr(runner, "judge", killed)
    with pytest.raises(KeyboardInterrupt):
        worker.turn(row.pk, now)
    monkeypatch.undo()
    assert worker.turn(row.pk, now) is False  # its lease still runs
    assert after(row).state == "running"
    later = now() + timedelta(hours=1)
    assert row.pk in lease.waiting(BacktestRow, later)
    while worker.turn(row.pk, lambda: later):
        pass
    assert (after(row).state, after(row).done) == ("done", 7)


def killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("resolved")
def test_what_kills_every_worker_counts_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ask()
    monkeypatch.setattr(runner, "judge", killed)
    at = now()
    moments = [at + hour * HOUR for hour in range(worker.MOST_ATTEMPTS + 1)]
    for moment in moments[:-1]:
        with pytest.raises(KeyboardInterrupt):
            worker.turn(row.pk, iter([moment] * 9).__next__)
    assert worker.turn(row.pk, lambda: moments[-1]) is False
    assert after(row).state == "failed"
    assert after(row).error == "given up after 3 workers were lost over it, at window 1"


@pytest.mark.usefixtures("resolved")
def test_another_version_of_the_analyzer_ends_it() -> None:
    row = ask()
    BacktestRow.objects.filter(pk=row.pk).update(version="0.9.0")
    assert finished(row).error == "tally 0.9.0 is installed as 1.0.0 now; start a new backtest"


@pytest.mark.usefixtures("resolved")
def test_windows_that_fail_are_counted_with_their_reason() -> None:
    row = finished(ask(every=HOUR, params={"crash": "yes"}))
    assert row.result is not None
    assert (row.state, row.result["windows"]["failed"]) == ("done", 2)
    assert {one.reason for one in row.windows.all()} == {"RuntimeError: as asked (tally_plugin, line 13)"}


@pytest.mark.usefixtures("resolved")
def test_a_second_backtest_judges_the_windows_of_the_first() -> None:
    first = finished(ask())
    second = finished(ask(params={"share": 0.95}, against=first.pk, every=MINUTE))
    assert [one.end for one in second.windows.all()] == [one.end for one in first.windows.all()]
    assert ((first.result or {})["right"], (second.result or {})["missed"]) == (1, 1)


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"params": {"shares": 1}}, "params"),
    ({"end": TOP}, "end"),
    ({"start": TOP - 900 * 24 * HOUR, "end": TOP - 800 * 24 * HOUR}, "end"),
    ({"every": timedelta(milliseconds=1)}, "every"),
    ({"length": 40 * 24 * HOUR}, "length"),
    ({"regions": ("nowhere",)}, "start"),
    ({"start": TOP - 2 * HOUR, "end": TOP - HOUR}, "start"),
    ({"against": UUID(int=1)}, "against"),
)


@pytest.mark.usefixtures("resolved")
def test_what_cannot_be_judged_is_refused_with_the_field() -> None:
    for changes, field in WRONG:
        with pytest.raises(InvalidBacktestError) as refused:
            ask(**changes)
        assert refused.value.field == field, changes


@pytest.mark.usefixtures("resolved")
def test_there_is_an_end_to_how_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MOST_WAITING", 1)
    ask()
    with pytest.raises(InvalidBacktestError, match="1 backtests are under way"):
        ask()


@pytest.mark.usefixtures("resolved")
def test_old_ones_are_forgotten_with_their_windows() -> None:
    row = finished(ask())
    assert worker.drop_old(now()) == 0
    assert worker.drop_old(now() + timedelta(days=400)) == 1
    assert not BacktestRow.objects.filter(pk=row.pk).exists()


@pytest.mark.usefixtures("resolved")
def test_the_api_asks_follows_and_stops() -> None:
    client = Client(
        headers={"Authorization": f"Bearer {keys.create('ci', ['incidents:write', 'incidents:read'])}"}
    )
    body = {"analyzer": "tally", "start": TOP.isoformat(), "end": (TOP + 2 * HOUR).isoformat(), "every": "1h"}
    asked = client.post("/api/v1/backtests", body, content_type="application/json")
    assert (asked.status_code, asked.json()["state"]) == (202, "queued")
    finished(BacktestRow.objects.get(pk=asked.json()["id"]))
    told = client.get(asked.headers["Location"]).json()
    assert (told["done"], told["total"], told["result"]["right"]) == (2, 2, 1)
    assert client.get("/api/v1/backtests").json()["results"][0]["id"] == told["id"]
    assert client.post(f"{asked.headers['Location']}/cancel").status_code == 409


@pytest.mark.usefixtures("resolved")
def test_the_api_names_the_field_that_cannot_be() -> None:
    client = Client(headers={"Authorization": f"Bearer {keys.create('ci', ['incidents:write'])}"})
    body = {"analyzer": "tally", "start": TOP.isoformat(), "end": (TOP + 2 * HOUR).isoformat()}
    for changes, field in (
        ({"analyzer": "weather"}, "analyzer"),
        ({"params": {"share": "\0"}}, "params"),
        ({"start": "0001-01-01T00:00:00Z"}, "start"),
        ({"end": "9999-12-31T00:00:00Z"}, "end"),
        ({"every": "1ms"}, "every"),
        ({"windows": 3}, "windows"),
    ):
        answer = client.post("/api/v1/backtests", {**body, **changes}, content_type="application/json")
        assert (answer.status_code, field in answer.content.decode()) == (400, True), changes


@pytest.mark.usefixtures("resolved")
def test_the_form_proposes_the_last_day_with_a_resolved_incident() -> None:
    Door("late feeder").post(healthy(TOP - 96 * HOUR, 3 * MINUTE))
    failed = TOP - 72 * HOUR
    IncidentRow.objects.filter(number=1).update(last_failure=failed)
    assert requests.last_resolved_failure("tally") == failed
    client = Client()
    client.force_login(get_user_model().objects.create(username="bob"))
    typed = client.get("/analyzers/tally/backtest").context["typed"]
    assert typed["start"] < f"{failed:%Y-%m-%dT%H:%M}" < typed["end"]
