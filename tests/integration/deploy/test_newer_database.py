"""A version that is older than the database does not start on it."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from deploy.observability.health import unknown_migrations
from deploy.supervisor import supervisor
from deploy.supervisor.supervisor import StartupError, make_ready

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the files of the console nor the imports of the processes are needed here."""
    monkeypatch.setattr(supervisor, "collect", lambda: None)
    monkeypatch.setattr(supervisor, "preload", lambda: None)


def test_a_database_of_this_version_is_taken() -> None:
    assert unknown_migrations() == []
    make_ready(lambda _: None)


def test_a_migration_of_a_newer_version_is_named() -> None:
    MigrationRecorder(connection).record_applied("sessions", "9999_from_the_future")
    with pytest.raises(
        StartupError, match=r"this one does not know sessions\.9999_from_the_future\. Start that"
    ):
        make_ready(lambda _: None)


def test_what_an_app_left_behind_that_is_no_longer_used_is_no_newer_version() -> None:
    MigrationRecorder(connection).record_applied("gone", "0001_initial")
    assert unknown_migrations() == []
