"""The version before goes on reading and writing after the migrations of this one."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from tests.architecture.test_migrations import CONTRACT, is_ours

COLUMNS = """
SELECT column_name, is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO' AND is_generated = 'NEVER'
  FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = %s
"""


def previous() -> list[tuple[str, str]]:
    """The last migration but one of each app of ours; the last itself where it is the only one or takes away."""
    loader = MigrationLoader(None, ignore_no_migrations=True)
    found: list[tuple[str, str]] = []
    for app, name in filter(lambda leaf: is_ours(leaf[0]), loader.graph.leaf_nodes()):
        own = [parent for parent in loader.disk_migrations[app, name].dependencies if parent[0] == app]
        found += own if own and not name.endswith(CONTRACT) else [(app, name)]
    return found


@pytest.mark.django_db
def test_models_of_the_version_before_fit_the_tables_of_this_one() -> None:
    before = MigrationLoader(connection).project_state(previous()).apps
    seen = 0
    for model in before.get_models():
        if is_ours(model._meta.app_label):
            with connection.cursor() as cursor:
                cursor.execute(COLUMNS, (model._meta.db_table,))
                demanded = dict(cursor.fetchall())
            known = {field.column for field in model._meta.concrete_fields}
            unknown = {name for name, is_demanded in demanded.items() if is_demanded} - known
            assert known <= set(demanded), f"{model.__name__}: columns are gone"
            assert not unknown, f"{model.__name__}: an INSERT of the version before lacks {unknown}"
            list(model._default_manager.all()[:1])
            seen += 1
    assert seen > 5
