"""Commands that are typed wrongly: one line that says what would be right, and the code that scripts look at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (
            "create_key",
            "the following arguments are required: name, --scope; see manage.py create_key --help",
        ),
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
def test_what_is_typed_wrongly_is_told_in_one_line(typed: str, told: str, tmp_path: Path) -> None:
    done = manage(*typed.split(), DOSSIER_HOME=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{told}\n")


def test_help_stays(tmp_path: Path) -> None:
    done = manage("sender", "--help", DOSSIER_HOME=str(tmp_path))
    assert (done.returncode, done.stdout.startswith("usage: manage.py sender")) == (0, True)


def test_the_last_port_leaves_one_for_live_updates(tmp_path: Path) -> None:
    asked = "from django.conf import settings; print(settings.EVENTS_PORT)"
    done = manage(
        "shell", "--no-imports", "-c", asked, PORT="65535", DOSSIER_EVENTS_PORT="", DOSSIER_HOME=str(tmp_path)
    )
    assert (done.returncode, done.stdout) == (0, "65534\n")
