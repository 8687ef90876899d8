"""Commands for a terminal import what they need: listing analyzers imports no method and no numeric library."""

import os
import subprocess
import sys
from functools import cache

import pytest
from django.core.management import get_commands

from tests.places import ROOT

HEAVY = {"numpy", "scipy", "sklearn", "pyarrow", "pandas", "celery", "psycopg2", "grpc"}


@cache
def ran(*command: str) -> subprocess.CompletedProcess[str]:
    """A command after its end; what it imports is on its standard error."""
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    return subprocess.run(
        [sys.executable, "-X", "importtime", "manage.py", *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def imported(*command: str) -> set[str]:
    """The modules that a command imports."""
    return {line.rpartition("|")[2].strip() for line in ran(*command).stderr.splitlines()}


@pytest.mark.parametrize("command", [("analyzers",), ("analyze", "--help")])
def test_a_command_that_judges_nothing_imports_no_method(command: tuple[str, ...]) -> None:
    modules = imported(*command)
    assert not modules & HEAVY
    assert not {name for name in modules if name.endswith(".analysis")}


def test_help_imports_no_models_and_no_libraries() -> None:
    modules = imported("--help")
    assert not modules & (HEAVY - {"psycopg2"})  # settings parse the address of the database
    assert not {name for name in modules if name.endswith(".runs.models")}


def test_help_lists_every_command() -> None:
    done = ran("--help")
    assert set(get_commands()) - set(done.stdout.split()) == set()
