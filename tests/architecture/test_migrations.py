"""The migrations say what the models say, and the version before serves on what they make of the schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import models
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import (
    AddField,
    AlterField,
    AlterModelTable,
    DeleteModel,
    RemoveField,
    RenameField,
    RenameModel,
    RunSQL,
)
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models.fields import NOT_PROVIDED

from tests.places import ROOT

CONTRACT = "_contract"
"""Ends the name of a migration that takes away what no version since the last release uses."""
TAKES_AWAY = (RemoveField, DeleteModel, RenameField, RenameModel, AlterModelTable)
SQL = re.compile(r"\b(?:DROP\s+(?:TABLE|COLUMN)|RENAME|SET\s+NOT\s+NULL)\b", re.IGNORECASE)


def test_no_model_has_changed_without_a_migration() -> None:
    call_command("check_migrations")


def test_migrations_add_only_what_the_version_before_does_not_mind() -> None:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    found = [
        f"{app}.{name}: {why}"
        for (app, name), migration in sorted(loader.disk_migrations.items())
        if is_ours(app) and not migration.initial and not name.endswith(CONTRACT)
        for why in complaints(migration, loader.project_state((app, name), at_end=False))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (RemoveField("team", "description"), "Remove field description from team"),
        (RenameField("team", "description", "text"), "Rename field description on team to text"),
        (AddField("team", "floor", models.IntegerField(default=0)), "floor is NOT NULL without db_default"),
        (AddField("team", "floor", models.IntegerField(db_default=0)), None),
        (AddField("team", "floor", models.IntegerField(null=True)), None),
        (AlterField("team", "slug", models.IntegerField()), "slug gets another type"),
        (RunSQL("ALTER TABLE a ALTER b SET NOT NULL"), "SQL: SET NOT NULL"),
    ],
)
def test_what_the_version_before_would_mind_is_named(operation: Operation, why: str | None) -> None:
    migration: Migration = type("Next", (Migration,), {"operations": [operation]})("9999_next", "teams")
    state = MigrationLoader(None, ignore_no_migrations=True).project_state(("teams", "0001_initial"))
    assert list(complaints(migration, state)) == ([why] if why else [])


def is_ours(app: str) -> bool:
    return (
        ROOT in Path(apps.get_app_config(app).path).parents and ".venv" not in apps.get_app_config(app).path
    )


def complaints(migration: Migration, state: ProjectState) -> Iterator[str]:
    """Operations that break a version that knows the schema as of `state`."""
    for operation in migration.operations:
        before = state.clone()
        operation.state_forwards(migration.app_label, state)
        if isinstance(operation, TAKES_AWAY):
            yield operation.describe()
        elif isinstance(operation, AddField):
            given = operation.field
            if not given.null and given.db_default is NOT_PROVIDED and not given.many_to_many:
                yield f"{operation.name} is NOT NULL without db_default"
        elif isinstance(operation, AlterField):
            model = before.models[migration.app_label, operation.model_name_lower]
            old, new = model.fields[operation.name], operation.field
            if old.null and not new.null:
                yield f"{operation.name} becomes NOT NULL"
            if type(old) is not type(new):
                yield f"{operation.name} gets another type"
        elif isinstance(operation, RunSQL):
            yield from (f"SQL: {found}" for found in SQL.findall(str(operation.sql)))
