"""`manage.py rebuild_projections`"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from incidents.incident.rebuild import rebuild


class Command(BaseCommand):
    help = (
        "Rebuilds all read models of incidents from the log, while writers continue, and says"
        " whether anything differed."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        result = rebuild(self._progress)
        if not result.differed:
            print(f"{result.incidents} incidents rebuilt from the log; nothing differed")
            return
        print(f"{result.incidents} incidents rebuilt from the log; differed before:")
        for name in result.differed:
            print(f"  {name}")

    def _progress(self, done: int) -> None:
        if done % 500 == 0:
            print(f"{done} incidents rebuilt")
