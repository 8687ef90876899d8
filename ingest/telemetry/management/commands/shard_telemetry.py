"""`manage.py shard_telemetry`: spread telemetry over the nodes of Citus, by region."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError

from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store import sharding
from ingest.telemetry.store.tables import is_sharded, table


class Command(BaseCommand):
    help = "Spread telemetry over the nodes of Citus, by region. Stop Dossier on all machines first."

    def handle(self, **options: object) -> None:
        if not sharding.has_citus():
            raise CommandError(
                "Nothing changed: this database has no Citus. CREATE EXTENSION citus on every node, then add"
                " the workers with citus_add_node."
            )
        if not is_sharded():
            sharding.prepare()
        sharding.distribute([table(kind) for kind in KINDS.values()])
        self.stdout.write("Telemetry lies on the nodes of Citus, by region. Start Dossier again.")
