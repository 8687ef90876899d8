"""Commands that are typed wrongly: one line that says what would be right, and the code that scripts look at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management.base import CommandParser

import manage as command_line
from ingest.integrations.generic.presets import READY
from tests.places import ROOT


def manage(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "deploy.settings", **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def typed_here(line: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """The exit code of a command in this process; a process of its own takes a second to start."""
    monkeypatch.setattr(sys, "argv", ["manage.py", *line.split()])
    monkeypatch.setattr(CommandParser, "error", CommandParser.error)  # the command line replaces it
    with pytest.raises(SystemExit) as end:
        command_line.main()
    return end.value.code


def test_a_process_ends_with_one_line_and_the_code_of_wrong_usage(tmp_path: Path) -> None:
    done = manage("create_key", DOSSIER_HOME=str(tmp_path))
    told = "the following arguments are required: name, --scope; see manage.py create_key --help\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (
            "sender prtg",
            f"argument name: invalid choice: 'prtg' (choose from {', '.join(map(repr, READY))}); "
            "see manage.py sender --help",
        ),
        (
            "sender nagios --address dossier",
            "argument --address: 'dossier' is no address of an integration; "
            "https://dossier.example.com/integrations/generic/KEY is one; see manage.py sender --help",
        ),
        (
            "analyze deepview --colour",
            "unrecognized arguments: --colour; see manage.py analyze --help",
        ),
    ],
)
def test_what_is_typed_wrongly_is_told_in_one_line(
    typed: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed_here(typed, monkeypatch) == 2
    assert capsys.readouterr() == ("", f"{told}\n")


def test_help_stays(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed_here("sender --help", monkeypatch) == 0
    assert capsys.readouterr().out.startswith("usage: manage.py sender")


def test_the_last_port_leaves_one_for_live_updates(tmp_path: Path) -> None:
    asked = "from django.conf import settings; print(settings.EVENTS_PORT)"
    done = manage(
        "shell", "--no-imports", "-c", asked, PORT="65535", DOSSIER_EVENTS_PORT="", DOSSIER_HOME=str(tmp_path)
    )
    assert (done.returncode, done.stdout) == (0, "65534\n")


@pytest.mark.parametrize(("long", "port"), [("", "9101"), ("9102", "9102")])
def test_make_demo_takes_the_port_of_live_updates_by_its_short_name(long: str, port: str) -> None:
    shown = "sh -c 'echo $$DOSSIER_EVENTS_PORT-$$EVENTS_PORT- $$@' --"
    done = subprocess.run(
        ["make", "--silent", "--old-file=run", "demo", f"PY={shown}"],
        cwd=ROOT,
        env={**os.environ, "EVENTS_PORT": "9101", "DOSSIER_EVENTS_PORT": long},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == f"{port}-- manage.py demo\n"
