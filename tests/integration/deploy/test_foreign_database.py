"""A version does not start on the database of another one that it does not know."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from deploy.observability.health import foreign_database
from deploy.supervisor import supervisor
from deploy.supervisor.supervisor import StartupError, make_ready

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


def test_a_database_of_a_version_before_the_first_release_is_refused_with_what_to_do() -> None:
    MigrationRecorder(connection).record_applied("log", "0001_event_log")
    with pytest.raises(StartupError, match=r"before 0\.1\.0.* Start with an empty database"):
        make_ready(lambda _: None)
    with pytest.raises(CommandError, match=r"before 0\.1\.0"):
        call_command("migrate", verbosity=0)


def test_what_an_app_left_behind_that_is_no_longer_used_is_no_newer_version() -> None:
    MigrationRecorder(connection).record_applied("gone", "0001_initial")
    assert foreign_database() is None
