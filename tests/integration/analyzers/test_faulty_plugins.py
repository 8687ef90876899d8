"""A plugin that cannot be used is shown in red in every place that operators look at, and stops no other analyzer."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import Client

from analyzers import registry
from analyzers.queries import Schedule
from deploy.observability import metrics
from tests.integration.analyzers.runs.cases import (
    HOUR,
    MINUTE,
    TALLY,
    TOP,
    Door,
    healthy,
    hourly,
    install_plugin,
    work,
)

pytestmark = pytest.mark.usefixtures("log_database", "tally", "storm")
BROKEN = TALLY.replace('"path_outcome"', '"path_outcomes"').replace('"tally"', '"storm"')
REASON = "there is no telemetry kind path_outcomes"


@pytest.fixture
def storm(tmp_path: Path, tally: None) -> Iterator[None]:  # noqa: ARG001
    """The analyzer `storm`, whose telemetry kind does not exist, installed beside `tally`."""
    install_plugin(tmp_path, "storm", BROKEN)
    registry.refresh()
    yield
    registry.refresh()


@pytest.fixture
def alice() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    return client


def page(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def test_every_page_has_it_in_red(alice: Client) -> None:
    shown = page(alice, "/")
    assert 'class="operator" role="alert"' in shown
    assert REASON in shown


def test_the_page_of_analyzers_says_what_would_cure_it(alice: Client) -> None:
    shown = page(alice, "/analyzers")
    assert "storm (storm-plugin, storm_plugin:ANALYZER)</strong> cannot be used" in shown
    assert "Correct the declaration of the analyzer." in shown
    assert 'href="/analyzers/tally"' in shown


def test_the_check_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemCheckError, match=REASON):
        call_command("check")
    capsys.readouterr()


def test_other_commands_are_not_stopped() -> None:
    call_command("migrate", verbosity=0, stdout=StringIO(), skip_checks=False)


def test_readyz_warns_and_stays_ready(alice: Client) -> None:
    assert (
        "analyzers: problems of storm; manage.py doctor names them" in alice.get("/readyz").json()["warnings"]
    )


def test_metrics_tell_it_from_those_that_run() -> None:
    (family,) = (one for one in metrics.from_database() if one.name == "dossier_analyzer_up")
    values = {sample.labels["analyzer"]: sample.value for sample in family.samples}
    assert (values["storm"], values["tally"]) == (0, 1)


def test_an_analyzer_that_is_scheduled_and_not_installed_is_a_problem_too(alice: Client) -> None:
    hourly(name="lost", analyzer="removed")
    assert "removed: a schedule runs it and it is not installed" in page(alice, "/")


def test_its_schedules_say_why_they_do_not_run(alice: Client) -> None:
    hourly(name="broken", analyzer="storm")
    shown = page(alice, "/schedules")
    assert "<strong>Does not run</strong>" in shown
    assert 'storm <span class="muted">(cannot be used)</span>' in shown
    assert "Correct the declaration of the analyzer.<" in shown
    assert REASON in shown


def test_its_schedule_can_be_turned_off(alice: Client) -> None:
    hourly(name="broken", analyzer="storm")
    form = {"name": "broken", "length": "1 h", "every": "5 min", "grace": "2 min"}
    alice.post("/schedules", form)
    assert not Schedule.objects.get(name="broken").enabled


def test_a_run_of_it_is_refused_with_the_reason(alice: Client) -> None:
    asked = {"analyzer": "storm", "region": "default", "length": "1h"}
    answer = alice.post("/api/v1/runs", asked, content_type="application/json")
    assert answer.status_code == 400
    assert REASON in answer.content.decode()


def test_the_api_lists_it_with_its_reason(alice: Client) -> None:
    answer = alice.get("/api/v1/analyzers").json()
    assert "tally" in {one["name"] for one in answer["results"]}
    assert [(one["name"], REASON in one["reason"]) for one in answer["problems"]] == [("storm", True)]


@pytest.mark.parametrize("traceback", [True, False])
def test_a_crash_shows_its_line_and_on_request_its_traceback(
    traceback: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.ndjson"
    rows.write_text("".join(json.dumps(row) + "\n" for row in healthy()))
    with pytest.raises(SystemExit, match="1"):
        call_command(
            "analyze", "tally", input=[f"path_outcome={rows}"], param=["crash=yes"], traceback=traceback
        )
    told = capsys.readouterr().err
    line = 1 + TALLY.splitlines().index('            raise RuntimeError("as asked")')
    assert f"RuntimeError: as asked (tally_plugin, line {line})" in told
    assert (f'tally_plugin.py", line {line}' in told) == traceback


def test_other_schedules_run() -> None:
    door = Door()
    hourly(name="broken", analyzer="storm")
    hourly()
    door.post([*healthy(TOP, HOUR), *healthy(TOP + HOUR, 3 * MINUTE)])
    assert [(run.analyzer, run.state) for run in work()] == [("tally", "done")]
