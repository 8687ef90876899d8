"""Another system's configuration is imported, previewed and applied, and alerts then go where they went before."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import stat
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError

from incidents.domain.routing.rules import Subject, route
from incidents.notifications.models import ContactMethod
from incidents.teams.models import Route, routing_table
from tests.unit.incidents.config.test_importers import POLICIES, SCHEDULES, USERS

pytestmark = pytest.mark.usefixtures("log_database")

ALERTMANAGER = """\
global: {slack_api_url: 'https://hooks.slack.com/services/T/B/C', smtp_smarthost: 'localhost:25', smtp_from: a@b.c}
route:
  receiver: ops
  group_by: [alertname, cluster]
  routes:
  - match: {severity: critical}
    receiver: pager
    continue: true
    routes:
    - match_re: {service: 'db|cache'}
      receiver: dba
      group_by: ['...']
  - matchers: ['team="web"', 'env!="prod"']
    receiver: chat
    mute_time_intervals: [weekend]
  - matchers: ['{team=~"net.*"}']
receivers:
- {name: ops, email_configs: [{to: ops@example.com}]}
- {name: pager, webhook_configs: [{url: 'https://example.com/hooks/s3cret'}]}
- {name: dba, email_configs: [{to: dba@example.com}]}
- {name: chat, slack_configs: [{channel: '#web'}]}
inhibit_rules:
- {source_matchers: ['severity="critical"'], target_matchers: ['severity="warning"'], equal: [alertname]}
time_intervals:
- {name: weekend, time_intervals: [{weekdays: ['sunday', 'friday:saturday']}]}
"""
LABELS = {
    "severity": ("critical", "warning"),
    "service": ("db", "dbx", "web"),
    "team": ("web", "net", "network", "other"),
    "env": ("prod", "dev"),
}


def imported(*arguments: str) -> str:
    """Messages of the command beside the file."""
    told = StringIO()
    call_command("config", "import", *arguments, stdout=StringIO(), stderr=told)
    return told.getvalue()


def diff(file: Path) -> str:
    out = StringIO()
    try:
        call_command("config", "diff", str(file), stdout=out)
    except SystemExit:
        return out.getvalue()
    return out.getvalue()


def test_alerts_go_where_the_alertmanager_sent_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, file, secrets = tmp_path / "alertmanager.yml", tmp_path / "dossier.yaml", tmp_path / "secrets.sh"
    source.write_text(ALERTMANAGER)
    told = imported("alertmanager", str(source), "--out", str(file), "--environment", str(secrets))
    assert "Translated: channels 4, escalation policies 4, routes 5, inhibitions 1, maintenance 1." in told
    assert "line 8: route.routes[1].continue: an incident has one route" in told
    assert f"manage.py config diff {file}" in told
    assert "s3cret" not in file.read_text() + told
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    assert "export CHANNEL_ADDRESS_PAGER_WEBHOOK=https://example.com/hooks/s3cret\n" in secrets.read_text()
    for line in secrets.read_text().splitlines():
        name, _, value = line.removeprefix("# ").removeprefix("export ").partition("=")
        monkeypatch.setenv(name, value or "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#web")
    Route.objects.all().delete()
    call_command("config", "apply", str(file), stdout=StringIO())
    assert diff(file) == "Nothing differs.\n"
    table, sets = (
        routing_table(),
        [dict(zip(LABELS, one, strict=True)) for one in itertools.product(*LABELS.values())],
    )
    ours = [route(Subject(labels=labels), table).policy for labels in sets]
    assert set(ours) == {"ops", "pager", "dba", "chat"}
    if (amtool := shutil.which("amtool")) is None:
        pytest.skip("no amtool to compare with: run deploy/install-senders.sh")
    source.write_text(ALERTMANAGER.replace("    continue: true\n", ""))
    theirs = [
        subprocess.run(
            [amtool, "config", "routes", "test", f"--config.file={source}", *(f"{k}={v}" for k, v in labels.items())],
            capture_output=True, text=True, check=True, timeout=20,
        ).stdout.strip()
        for labels in sets[::5]
    ]  # fmt: skip
    assert ours[::5] == theirs


def test_a_diff_is_read_before_the_secrets_are_set(tmp_path: Path) -> None:
    source, file = tmp_path / "alertmanager.yml", tmp_path / "dossier.yaml"
    source.write_text(ALERTMANAGER)
    imported("alertmanager", str(source), "--out", str(file))
    *_, count, unset = diff(file).splitlines()
    assert count == "15 changes to be made."
    names = [f"CHANNEL_ADDRESS_{one}" for one in ("OPS_EMAIL", "PAGER_WEBHOOK", "DBA_EMAIL", "CHAT_SLACK")]
    assert unset == f"Set before `config apply`: {', '.join(names)}."
    with pytest.raises(CommandError) as refused:
        call_command("config", "apply", str(file), stdout=StringIO())
    *lines, nothing = str(refused.value).splitlines()
    assert [re.search(r"set (\w+) in the environment", line)[1] for line in lines] == names  # type: ignore[index]
    assert nothing == "Nothing was changed."
    assert not ContactMethod.objects.exists()


def test_an_export_is_applied_to_the_accounts_that_exist(tmp_path: Path) -> None:
    get_user_model().objects.create(username="bobby", email="bob@example.com")
    for name, body in (("users", USERS), ("schedules", SCHEDULES), ("policies", POLICIES)):
        (tmp_path / f"{name}.json").write_text(json.dumps(body))
    file = tmp_path / "dossier.yaml"
    assert "users 2" in imported("pagerduty", str(tmp_path), "--out", str(file))
    assert "+ schedules storage-primary" in diff(file)
    call_command("config", "apply", str(file), stdout=StringIO())
    assert diff(file) == "Nothing differs.\n"
    assert get_user_model().objects.get(email="alice@example.com").username == "alice"


def test_what_cannot_be_read_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    out, bad = tmp_path / "out.yaml", tmp_path / "bad.json"
    bad.write_text("{")
    for arguments, told in (
        (("opsgenie", str(bad)), "bad.json: is not valid JSON"),
        (("opsgenie", str(tmp_path / "none.json")), "none.json: cannot be read"),
        (("alertmanager", str(bad), str(bad)), "one file, its alertmanager.yml"),
        (("opsgenie", str(bad), "--integration", "x"), "--integration is for alertmanager only"),
    ):
        with pytest.raises(CommandError, match=told):
            imported(*arguments, "--out", str(out))
    assert not out.exists()
