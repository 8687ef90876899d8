"""`manage.py check_migrations`: do the migrations say what the models say? Opens no connection.

(`makemigrations --check` wants a database, and warns when there is none.)
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState


class Command(BaseCommand):
    help = "Fail if a model has changed without a migration, or if there are two latest migrations."

    requires_system_checks: list[str] = []  # noqa: RUF012  # Django declares it so

    def handle(self, *args: Any, **options: Any) -> None:
        loader = MigrationLoader(None, ignore_no_migrations=True)
        if conflicts := loader.detect_conflicts():
            raise CommandError(f"several last migrations: {conflicts}")
        detector = MigrationAutodetector(loader.project_state(), ProjectState.from_apps(apps))
        changes = detector.changes(graph=loader.graph)
        missing = [
            f"{app}: {operation.describe()}"
            for app, migrations in changes.items()
            for migration in migrations
            for operation in migration.operations
        ]
        if missing:
            raise CommandError("not in any migration:\n  " + "\n  ".join(missing))
