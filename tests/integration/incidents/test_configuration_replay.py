"""A file of configuration against recorded incidents: over the API and from the shell. Nothing is changed by it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from incidents import commands, queries
from incidents.api.config.replay import configuration_in_force, past_incidents, recorded_past
from incidents.commands import Report
from incidents.domain.configuration_replay import compare
from incidents.domain.escalation.policy import steps_from
from incidents.domain.incident.alerts import STORM_INCIDENTS, STORM_SPAN
from incidents.escalation.models import EscalationPolicy
from incidents.incident.models import IncidentRow
from incidents.routing.replay import Openings
from incidents.teams.models import Route, Silence, Team
from incidents.timers import OF_INCIDENTS
from ingest.api import keys
from ingest.integrations.normalized import Alert, Status
from ingest.queries import Context, now_utc
from tests.integration.incidents.alerts.test_correlate import alert, send

pytestmark = pytest.mark.usefixtures("log_database")
ALICE = Context("user:alice")
STEPS = [{"after": 0, "actions": [{"person": "alice"}]}, {"after": 300, "actions": [{"person": "bob"}]}]
MOVED = """\
routes:
- {name: disks, pattern: "storage_cluster/*", team: storage}
"""
SILENCED = """\
silences:
- id: 5f0e3c56-6f58-4cf4-8f1c-4a4a5b1f0a11
  matchers: ['alertname="DiskSlow"']
  starts_at: 2026-01-01T00:00:00Z
  ends_at: 2099-01-01T00:00:00Z
  comment: too many
"""


INHIBITED = """\
inhibitions:
- {slug: node, source_matchers: ['alertname="NodeDown"'], target_matchers: ['alertname="DiskSlow"'], equal: [rack]}
"""
PLANNED = """\
maintenance:
- slug: storage-work
  reason: firmware
  components: ["storage_cluster/*"]
  starts_at: 2099-01-01T00:00:00Z
  ends_at: 2099-01-10T00:00:00Z
"""
ROTA = """\
schedules:
- slug: primary
  name: Primary
  time_zone: UTC
  layers:
  - {name: weeks, people: [%s], start: "%s", turn: 1w}
"""


def people(*names: str) -> None:
    for name in names:
        get_user_model().objects.create_user(name)


def policy(call: Mapping[str, str], slug: str = "everything") -> None:
    """The default team's policy: one call at once."""
    steps = [one.as_json() for one in steps_from([{"after": 0, "actions": [dict(call)]}])]
    EscalationPolicy.objects.all().delete()
    team = Team.objects.get(is_default=True)
    EscalationPolicy.objects.create(team=team, slug=slug, name=slug, steps=steps)


def rack_alert(key: str, name: str, status: Status = "firing") -> Alert:
    labels = {"alertname": name, "rack": "r1"}
    return alert(key, status, component=f"storage_cluster/{key}", labels=labels, group=name)


def diff(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, *more: str) -> dict[str, Any]:
    shell(tmp_path, text, "--json", *more)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def shell(tmp_path: Path, text: str, *more: str) -> None:
    file = tmp_path / "proposed.yaml"
    file.write_text(text)
    call_command("config", "diff", str(file), "--replay", "7d", *more)


def test_a_proposed_file_is_judged_by_the_recorded_past(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Route.objects.all().delete()
    people("alice", "bob")
    default = Team.objects.get(is_default=True).slug
    for slug in (default, "storage"):
        steps = [one.as_json() for one in steps_from(STEPS)]
        team = Team.objects.get(slug=slug)
        EscalationPolicy.objects.update_or_create(
            team=team, defaults={"slug": f"of-{slug}", "name": slug, "steps": steps}
        )
    send(alert("disk7", component="storage_cluster/s7", labels={"alertname": "DiskSlow"}))
    disk = queries.get("1").incident
    assert disk.team == default
    commands.hand_over(disk.id, "storage", "their disks", ALICE)
    commands.acknowledge(disk.id, ALICE)
    commands.resolve(disk.id, "storage_cluster/s7", "", ALICE)
    commands.open_incident(
        Report("Rack 12 loses packets", component="tor/dc1-t12"), Context("key:monitoring")
    )
    recorded = commands.resolve(queries.get("2").incident.id, "none", "", ALICE).position

    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {keys.create('ci', ('admin',))}")

    def replay(text: Any, **more: Any) -> Any:
        body = {"configuration": text, "days": 7, **more}
        return client.post("/api/v1/configuration/replay", body, format="json")

    moved = replay(MOVED)
    assert moved.status_code == 200, moved.data
    assert [(one["kind"], one["key"]) for one in moved.data["changes"]] == [("routes", "disks")]
    assert (
        moved.data["incidents"],
        moved.data["right_team"]["earlier"],
        moved.data["missed"]["incidents"],
    ) == (2, 1, 0)
    assert not Route.objects.exists()

    silenced = replay(SILENCED, max_missed=0, max_more_calls=0)
    assert (silenced.data["missed"]["incidents"], silenced.data["missed"]["of"]) == (1, 1)
    assert (
        silenced.data["calls"]["net"]["value"]
        == silenced.data["calls"]["after"] - silenced.data["calls"]["before"]
        < 0
    )
    assert silenced.data["exceeded"] == ["1 incidents missed, allowed are 0"]
    assert queries.get("2").position == recorded

    with pytest.raises(SystemExit) as ended:
        shell(tmp_path, SILENCED, "--max-missed", "0")
    assert ended.value.code == 1
    printed = capsys.readouterr().out
    assert "Missed      1 of 1" in printed
    assert "Threshold exceeded: 1 incidents missed, allowed are 0." in printed
    shell(tmp_path, SILENCED, "--max-missed", "1", "--json")
    assert json.loads(capsys.readouterr().out)["missed"] == silenced.data["missed"]

    for body, field in (
        ({"configuration": "routes: 7"}, "configuration"),
        ({"configuration": MOVED, "days": 0}, "days"),
        ({"configuration": MOVED, "max_missed": -1}, "max_missed"),
        ({"configuration": MOVED, "prune": "yes"}, "prune"),
        ({}, "configuration"),
    ):
        answer = client.post("/api/v1/configuration/replay", body, format="json")
        assert (answer.status_code, list(answer.data["errors"])) == (400, [field]), answer.data
    for wrong in ("soon", "400d"):
        with pytest.raises(CommandError, match=f"--replay {wrong}: "):
            call_command("config", "diff", str(tmp_path / "proposed.yaml"), "--replay", wrong)
    writer = APIClient()
    writer.credentials(HTTP_AUTHORIZATION=f"Bearer {keys.create('writer', ('incidents:write',))}")
    assert (
        writer.post("/api/v1/configuration/replay", {"configuration": MOVED}, format="json").status_code
        == 403
    )


def test_a_new_inhibition_drops_the_calls_of_its_targets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Route.objects.all().delete()
    people("alice")
    policy({"person": "alice"})
    send(rack_alert("s1", "NodeDown"))
    send(rack_alert("s2", "DiskSlow"))
    commands.resolve(queries.get("2").incident.id, "storage_cluster/s2", "", ALICE)
    found = diff(capsys, tmp_path, INHIBITED)
    assert (found["calls"]["before"], found["calls"]["after"]) == (2, 1)
    assert (found["never_opened"], found["missed"]["incidents"]) == (1, 1)
    assert found["people"] == [{"person": "alice", "before": 2, "after": 1}]


def test_a_removed_inhibition_opens_what_it_suppressed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Route.objects.all().delete()
    people("alice")
    policy({"person": "alice"})
    file = tmp_path / "in-force.yaml"
    file.write_text(INHIBITED)
    call_command("config", "apply", str(file))
    send(rack_alert("s1", "NodeDown"))
    send(rack_alert("s2", "DiskSlow"))
    assert IncidentRow.objects.count() == 1, "the second one is suppressed"
    capsys.readouterr()
    with pytest.raises(SystemExit):
        shell(tmp_path, "inhibitions: []\n", "--prune", "--max-more-calls", "0")
    printed = capsys.readouterr().out
    assert "Calls       1 -> 2: 1 more, 0 fewer" in printed
    assert "Openings    0 no longer opened, 1 newly opened" in printed
    assert "Called      alice 1 -> 2" in printed


def test_planned_work_of_more_than_a_week_is_taken_to_hold_all_the_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Route.objects.all().delete()
    people("alice")
    policy({"person": "alice"})
    send(rack_alert("s1", "DiskSlow"))
    found = diff(capsys, tmp_path, PLANNED)
    assert (found["calls"]["before"], found["calls"]["after"], found["never_opened"]) == (1, 0, 1)


def test_a_changed_rota_moves_calls_to_other_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Route.objects.all().delete()
    people("alice", "bob")
    file = tmp_path / "in-force.yaml"
    file.write_text(ROTA % ("alice", "2026-01-05T09:00"))
    call_command("config", "apply", str(file))
    policy({"schedule": "primary"})
    send(rack_alert("s1", "DiskSlow"))
    capsys.readouterr()
    found = diff(capsys, tmp_path, ROTA % ("bob", "2099-01-05T09:00"))
    assert found["people"] == [
        {"person": "alice", "before": 1, "after": 0},
        {"person": "bob", "before": 0, "after": 1},
    ]
    assert found["calls"]["net"]["value"] == 0


def test_alerts_that_began_before_the_span_are_replayed() -> None:
    people("alice")
    policy({"person": "alice"})
    now = now_utc()
    Silence.objects.create(
        matchers=[{"name": "alertname", "value": "DiskSlow", "isRegex": False, "isEqual": True}],
        starts_at=now - timedelta(hours=1),
        ends_at=now + timedelta(hours=1),
        created_by="alice",
        comment="planned work",
    )
    send(rack_alert("s1", "NodeDown"), rack_alert("s3", "DiskFull"))
    send(rack_alert("s2", "DiskSlow"))
    send(rack_alert("s1", "NodeDown", "acknowledged"), rack_alert("s3", "DiskFull", "resolved"))
    start = now_utc()
    Silence.objects.update(ends_at=start)
    assert OF_INCIDENTS["suppressed alerts"](now_utc()) == 1
    opened = IncidentRow.objects.get(number=3)
    send(rack_alert("s1", "NodeDown", "resolved"))
    openings = Openings(start, now_utc())
    assert list(openings.found) == [f"incident/{opened.pk}"]
    fired = {one.labels["alertname"]: one for one in openings.firings if one.end is None or one.end > start}
    assert set(fired) == {"NodeDown", "DiskSlow"}
    assert [one.firing for one in openings.found[f"incident/{opened.pk}"].alerts] == [fired["DiskSlow"]]
    node = fired["NodeDown"]
    assert now <= node.start < start <= (node.end or now)
    assert openings.unplaced == []
    assert {one.number: one.since for one in past_incidents(openings)} == {1: start, 2: start, 3: None}


STORM = 3 * STORM_INCIDENTS // 2
BY_RACK = """\
routes:
- {name: disks, pattern: "storage_cluster/*", team: %s, grouping: {by: [rack]}}
"""


def disk_alert(number: int, rack: str = "r1") -> Alert:
    labels = {"alertname": f"Check{number}", "rack": rack}
    return alert(f"s{number}", component=f"storage_cluster/s{number}", labels=labels, group=f"Check{number}")


def test_a_recorded_storm_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Route.objects.all().delete()
    people("alice")
    policy({"person": "alice"})
    for first in range(0, STORM, STORM // 3):
        send(*(disk_alert(n, "r1" if n % 2 else "r2") for n in range(first, first + STORM // 3)))
    assert IncidentRow.objects.count() == STORM_INCIDENTS + 1
    call_command("config", "export", str(tmp_path / "in-force.yaml"))

    same = diff(capsys, tmp_path, (tmp_path / "in-force.yaml").read_text())
    assert same["changes"] == []
    assert (same["incidents"], same["calls"]["before"]) == (STORM_INCIDENTS + 1, STORM_INCIDENTS + 1)
    assert (same["never_opened"], same["opened_anew"]) == (0, 0)
    assert (same["calls"]["more"], same["calls"]["fewer"], same["calls"]["net"]["value"]) == (0, 0, 0)
    assert "storms" not in same["left_out"]

    grouped = diff(capsys, tmp_path, BY_RACK % Team.objects.get(is_default=True).slug)
    assert (grouped["calls"]["before"], grouped["calls"]["after"]) == (STORM_INCIDENTS + 1, 2)
    assert (grouped["never_opened"], grouped["opened_anew"]) == (STORM_INCIDENTS - 1, 0)


@pytest.mark.parametrize("read_before", [STORM_SPAN, timedelta(0)])
def test_alerts_that_join_an_incident_from_before_the_span_open_none(
    monkeypatch: pytest.MonkeyPatch, read_before: timedelta
) -> None:
    monkeypatch.setattr("incidents.routing.replay.STORM_SPAN", read_before)
    Route.objects.all().delete()
    people("alice")
    policy({"person": "alice"})
    send(rack_alert("s1", "DiskSlow"))
    IncidentRow.objects.update(opened_at=now_utc() - timedelta(hours=1))
    start = now_utc()
    send(rack_alert("s2", "DiskSlow"))
    assert IncidentRow.objects.count() == 1
    past = recorded_past(Openings(start, now_utc()))
    assert [(one.number, one.since, len(one.alerts)) for one in past.incidents] == [(1, start, 2)]
    in_force = configuration_in_force(start, now_utc())
    found = compare(past, in_force, in_force)
    assert (found.incidents, found.calls_before, found.never) == (0, 0, 0)


def test_alerts_of_a_merged_incident_count_with_the_one_that_received_it() -> None:
    Route.objects.all().delete()
    people("alice")
    policy({"person": "alice"})
    start = now_utc()
    send(rack_alert("s1", "DiskSlow"))
    send(rack_alert("s2", "FanSlow"))
    commands.merge(queries.get("2").incident.id, queries.get("1").incident.id, "same disk", ALICE)
    past = recorded_past(Openings(start, now_utc()))
    assert [(one.number, len(one.alerts)) for one in past.incidents] == [(1, 2)]
    in_force = configuration_in_force(start, now_utc())
    found = compare(past, in_force, in_force)
    assert (found.incidents, found.calls_before) == (1, 2)
