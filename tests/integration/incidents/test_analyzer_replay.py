"""Schedules and versions of analyzers over recorded telemetry: calls, minutes, incidents missed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from rest_framework.test import APIClient

from analyzers.queries import Run
from analyzers.runs.scheduler import claim_due
from incidents import commands, follower, queries
from incidents.domain.escalation.policy import steps_from
from incidents.escalation.models import EscalationPolicy
from incidents.teams.models import Route, Team
from ingest.api import keys
from ingest.queries import Context
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, MINUTE, NOW, TOP, Door, healthy, hourly, work

pytestmark = pytest.mark.usefixtures("log_database", "tally")
SCHEDULE = """\
analysis_schedules:
- {name: hourly, analyzer: tally, length: 1h, every: 1h, params: {share: %s}, enabled: %s}
"""


@pytest.fixture
def resolved(log_database: str, tally: None) -> int:  # noqa: ARG001
    """tor/a failed in the second of two hours; the analyzer alone opened an incident, which was its fault."""
    endpoint = Door()
    endpoint.post(
        [*healthy(TOP, HOUR), *healthy(TOP + HOUR, HOUR, a=9), *healthy(TOP + 2 * HOUR, 3 * MINUTE)]
    )
    schedule = hourly(every=HOUR, by_arrival=False)
    while claim_due([schedule], NOW):
        work()
    follow_to_the_end(follower.follower())
    Route.objects.all().delete()
    get_user_model().objects.create_user("alice")
    steps = [one.as_json() for one in steps_from([{"after": 0, "actions": [{"person": "alice"}]}])]
    team = Team.objects.get(is_default=True)
    EscalationPolicy.objects.create(team=team, slug="p", name="p", steps=steps)
    incident = queries.get("1").incident
    commands.resolve(incident.id, "tor/a", "", Context("user:alice"))
    return incident.number


def replay(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, *more: str) -> list[dict[str, Any]]:
    file = tmp_path / "proposed.yaml"
    file.write_text(text)
    call_command("config", "diff", str(file), "--replay", "7d", "--json", *more)
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["analyzers"]
    return found


def test_parameters_that_find_less_miss_incidents_and_save_their_calls(
    resolved: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (one,) = replay(capsys, tmp_path, SCHEDULE % ("0.95", "true"))
    assert (one["before"]["right"], one["after"]["right"]) == (1, 0)
    assert one["compared"]["missed"] == {
        "incidents": 1,
        "of": 1,
        "share": 1.0,
        "low": pytest.approx(0.2065, abs=1e-3),
        "high": 1.0,
        "numbers": [resolved],
    }
    assert (one["compared"]["calls"]["before"], one["compared"]["calls"]["after"]) == (1, 0)


@pytest.mark.usefixtures("resolved")
def test_a_threshold_of_missed_incidents_counts_those_of_analyzers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        replay(capsys, tmp_path, SCHEDULE % ("0.95", "true"), "--max-missed", "0")
    assert json.loads(capsys.readouterr().out)["exceeded"] == ["1 incidents missed, allowed are 0"]


@pytest.mark.usefixtures("resolved")
def test_a_schedule_that_is_switched_off_finds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (one,) = replay(capsys, tmp_path, SCHEDULE % ("0.5", "false"))
    assert (one["after"], one["compared"]["missed"]["incidents"]) == (None, 1)


@pytest.mark.usefixtures("resolved")
def test_an_earlier_version_is_its_recorded_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unchanged = "routes: []\n"
    assert replay(capsys, tmp_path, unchanged, "--versions") == []
    Run.objects.update(version="0.9.0")
    (one,) = replay(capsys, tmp_path, unchanged, "--versions")
    assert (one["versions"], one["before"]["version"], one["after"]["version"]) == ("0.9.0", "0.9.0", "1.0.0")
    assert (one["before"]["right"], one["after"]["right"]) == (1, 1)
    assert (one["compared"]["known"]["incidents"], one["compared"]["known"]["minutes"]["value"]) == (1, 0)


@pytest.mark.usefixtures("resolved")
def test_a_request_judges_a_bounded_number_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.configuration.MOST_WINDOWS", 1)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {keys.create('ci', ('admin',))}")
    body = {"configuration": SCHEDULE % ("0.95", "true"), "days": 7}
    answer = client.post("/api/v1/configuration/replay", body, format="json")
    assert answer.status_code == 200, answer.data
    (one,) = answer.data["analyzers"]
    assert (one["before"], one["reason"]) == (
        None,
        "3 windows, more than 1 in one request; use manage.py config diff --replay",
    )
