"""A version does not start on a database that it does not know, or cannot migrate."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from deploy.embedded import Home
from deploy.observability.health import foreign_database
from deploy.supervisor import supervisor
from deploy.supervisor.supervisor import StartupError, make_ready
from incidents.teams import migrations

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the files of the console nor the imports of the processes are needed here."""
    monkeypatch.setattr(supervisor, "collect", lambda: None)
    monkeypatch.setattr(supervisor, "preload", lambda: None)


def test_a_database_of_this_version_is_taken() -> None:
    assert foreign_database() is None
    make_ready(lambda _: None)


def test_a_migration_of_a_newer_version_is_named() -> None:
    MigrationRecorder(connection).record_applied("sessions", "9999_from_the_future")
    with pytest.raises(
        StartupError, match=r"this one does not know sessions\.9999_from_the_future\. Start that"
    ):
        make_ready(lambda _: None)


def test_a_start_that_may_not_migrate_says_what_to_run(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MIGRATE_ON_START = False
    make_ready(lambda _: None)
    monkeypatch.setattr("deploy.observability.health.migrated", lambda: False)
    with pytest.raises(StartupError, match=r"run `manage\.py migrate` first"):
        make_ready(lambda _: None)


def test_a_database_of_a_version_before_the_first_release_is_refused_with_what_to_do() -> None:
    MigrationRecorder(connection).record_applied("log", "0001_event_log")
    with pytest.raises(StartupError, match=r"before 0\.1\.0.* Start with an empty database"):
        make_ready(lambda _: None)
    with pytest.raises(CommandError, match=r"before 0\.1\.0"):
        call_command("migrate", verbosity=0)


def test_what_an_app_left_behind_that_is_no_longer_used_is_no_newer_version() -> None:
    MigrationRecorder(connection).record_applied("gone", "0001_initial")
    assert foreign_database() is None


MIGRATION = """
from django.db import migrations

class Migration(migrations.Migration):
    dependencies = [("teams", "0001_initial")]
    operations = [migrations.RunSQL("SELECT 1 FROM no_such_table")]
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Callable[[str], None]:
    """Gives the app `teams` one more migration, which cannot be applied."""

    def add(text: str) -> None:
        name = f"migrations_{uuid.uuid4().hex}"
        folder = tmp_path / name / "migrations"
        shutil.copytree(Path(migrations.__file__).parent, folder)
        (folder / "0999_broken.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        settings.MIGRATION_MODULES = {"teams": f"{name}.migrations"}

    settings.HOME = Home(tmp_path)
    settings.HOME.logs.mkdir()
    return add


def test_a_migration_that_fails_is_named_in_one_line(broken: Callable[[str], None], tmp_path: Path) -> None:
    broken(MIGRATION)
    with pytest.raises(StartupError) as told:
        make_ready(lambda _: None)
    line = str(told.value)
    assert 'teams.0999_broken: ProgrammingError: relation "no_such_table" does not exist' in line
    assert "\n" not in line
    assert "Traceback" in (tmp_path / "logs" / "migrations.log").read_text()


@pytest.mark.parametrize(
    ("text", "why"), [("import no_such_module", "ModuleNotFoundError"), ("a b", "SyntaxError")]
)
def test_a_migration_that_cannot_be_read_is_named_in_one_line(
    broken: Callable[[str], None], text: str, why: str
) -> None:
    broken(text)
    with pytest.raises(StartupError, match=rf"The database cannot be migrated: .*{why}: .*") as told:
        make_ready(lambda _: None)
    assert "0999_broken.py" in str(told.value)
    assert "\n" not in str(told.value)
