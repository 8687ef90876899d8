"""`manage.py backtest` over telemetry that came through the endpoint and incidents that people resolved."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django import Settings

from analyzers import runner
from analyzers.runs.models import Run, StoredWindow
from analyzers.runs.scheduler import claim_due
from incidents import commands, follower, queries
from incidents.domain.values import rfc3339
from ingest.queries import Context, Position, read_all
from ingest.telemetry.cold.move import move_old
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store.tables import existing
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, MINUTE, NOW, TOP, Door, healthy, hourly, work

pytestmark = pytest.mark.usefixtures("log_database", "tally")
FROM, TO = rfc3339(TOP), rfc3339(TOP + 2 * HOUR)


@pytest.fixture
def ticket(log_database: str, tally: None) -> str:  # noqa: ARG001
    """tor/a failed in the second of two hours; a scheduled run opened an incident."""
    endpoint = Door()
    endpoint.post(
        [*healthy(TOP, HOUR), *healthy(TOP + HOUR, HOUR, a=9), *healthy(TOP + 2 * HOUR, 3 * MINUTE)]
    )
    schedule = hourly(every=HOUR, by_arrival=False)
    while claim_due([schedule], NOW):
        work()
    follow_to_the_end(follower.follower())
    return queries.get("1").incident.id


def resolve(ticket: str, cause: str) -> None:
    commands.resolve(ticket, cause, "", Context("user:alice"))


def backtest(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    call_command("backtest", "tally", "--from", FROM, "--to", TO, "--json", *options)
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def counts(answer: dict[str, Any]) -> dict[str, int]:
    return {name: answer[name] for name in ("right", "wrong", "unconfirmed", "missed")}


NOTHING = {"right": 0, "wrong": 0, "unconfirmed": 0, "missed": 0}


def test_a_confirmed_cause_is_right(ticket: str, capsys: pytest.CaptureFixture[str]) -> None:
    resolve(ticket, "tor/a")
    answer = backtest(capsys)
    assert counts(answer) == {**NOTHING, "right": 1}
    assert (answer["blames"][0]["component"], answer["found_alone"]) == ("tor/a", 1)


def test_a_ticket_resolved_with_none_makes_it_wrong(ticket: str, capsys: pytest.CaptureFixture[str]) -> None:
    resolve(ticket, "none")
    assert counts(backtest(capsys)) == {**NOTHING, "wrong": 1}


def test_rows_in_files_are_judged_as_in_postgres(
    ticket: str, capsys: pytest.CaptureFixture[str], settings: Settings, tmp_path: Path
) -> None:
    resolve(ticket, "tor/a")
    before = backtest(capsys)
    settings.TELEMETRY_COLD, settings.TELEMETRY_RETENTION = str(tmp_path), timedelta(days=3650)
    StoredWindow.objects.all().delete()  # or the windows that the runs kept would do
    Run.objects.all().delete()
    assert move_old(datetime.now(UTC) + timedelta(hours=2), HOUR).rows > 0
    assert existing(KINDS["path_outcome"]) == []
    after = backtest(capsys)
    assert {**after, "seconds": 0} == {**before, "seconds": 0}


@pytest.mark.usefixtures("ticket")
def test_an_open_ticket_confirms_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert counts(backtest(capsys)) == {**NOTHING, "unconfirmed": 1}


def test_other_parameters_miss_what_was_confirmed(ticket: str, capsys: pytest.CaptureFixture[str]) -> None:
    resolve(ticket, "tor/a")
    assert counts(backtest(capsys, "--param", "share=0.95")) == {**NOTHING, "missed": 1}


def test_windows_are_cut_as_asked_and_lie_within_the_time(
    ticket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    resolve(ticket, "tor/a")
    answer = backtest(capsys, "--length", "30m", "--every", "10m")
    assert sum(answer["windows"].values()) == 10
    assert (answer["length_seconds"], answer["every_seconds"]) == (1800, 600)


@pytest.mark.usefixtures("ticket")
def test_by_default_windows_are_those_of_its_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    assert backtest(capsys)["every_seconds"] == HOUR.total_seconds()


@pytest.mark.usefixtures("ticket")
def test_a_backtest_leaves_nothing_behind(capsys: pytest.CaptureFixture[str]) -> None:
    before = len(read_all(Position.START, 1000)), Run.objects.count(), StoredWindow.objects.count()
    backtest(capsys, "--every", "10m")
    after = len(read_all(Position.START, 1000)), Run.objects.count(), StoredWindow.objects.count()
    assert after == before


@pytest.mark.usefixtures("ticket")
def test_windows_that_the_analyzer_fails_on_are_counted_with_the_first_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = backtest(capsys, "--param", "crash=true")
    assert (answer["windows"]["failed"], answer["first_error"]) == (
        2,
        "RuntimeError: as asked (tally_plugin, line 13)",
    )


@pytest.mark.usefixtures("ticket")
def test_progress_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("backtest", "tally", "--from", FROM, "--to", TO)
    assert capsys.readouterr().err == "1 of 2 windows done\n2 of 2 windows done\n"


def test_what_it_prints_is_for_people(ticket: str, capsys: pytest.CaptureFixture[str]) -> None:
    resolve(ticket, "tor/a")
    call_command("backtest", "tally", "--from", FROM, "--to", TO)
    said = capsys.readouterr().out
    assert "precision 1.000 [0.207, 1.000], 1 of 1" in said
    assert "recall    1.000 [0.207, 1.000], 1 of 1" in said


@pytest.mark.usefixtures("ticket")
def test_ctrl_c_ends_it_with_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "judge", interrupt)
    with pytest.raises(SystemExit) as ended:
        backtest(capsys)
    assert (ended.value.code, capsys.readouterr().err) == (130, "interrupted\n")


@pytest.mark.usefixtures("ticket")
@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("talley", {}, "talley"),
        ("tally", {"--from": "yesterday"}, "--from yesterday: must be an RFC 3339 time"),
        ("tally", {"--from": "2026-11-20T08:00:00"}, "must be an RFC 3339 time"),
        ("tally", {"--to": FROM}, "is not before --to"),
        ("tally", {"--param": "shares=1"}, "did you mean share?"),
        ("tally", {"--every": "soon"}, "--every: 'soon' is not a span of time"),
        ("tally", {"--length": "0m"}, "must be greater than 0"),
        ("tally", {"--region": "mars"}, "has arrived from mars"),
        ("tally", {"--from": "2001-01-01", "--to": "2001-01-02"}, "telemetry is kept from"),
        (
            "tally",
            {"--from": rfc3339(TOP - 5 * HOUR), "--to": rfc3339(TOP - 4 * HOUR)},
            "that was recorded: default",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line_and_exit_code_2(
    name: str, options: dict[str, str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"--from": FROM, "--to": TO, **options}
    with pytest.raises(SystemExit) as ended:
        call_command("backtest", name, *(word for pair in given.items() for word in pair))
    said = capsys.readouterr().err
    assert (ended.value.code, said.count("\n")) == (2, 1)
    assert reason in said
