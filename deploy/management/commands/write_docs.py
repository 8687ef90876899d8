"""`manage.py write_docs`: write the computed parts of the documentation, with the default settings."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from deploy import env
from frontend import documents
from frontend.document_parts import SETTINGS, computed, table, value
from frontend.senders import SENDERS


def default_parts() -> dict[str, str]:
    """Every computed part by name, as it is where no variable is set."""
    defaults = {name: value(name, env.VARIABLES[f"{env.PREFIX}{name}"].default) for name in SETTINGS}
    return {**{name: made() for name, made in computed().items()}, **defaults, "settings": settings_table()}


def settings_table() -> str:
    """Every variable that the settings read, with its default and its meaning."""
    rows = (
        (f"`{one.name}`", f"`{one.default}`" if one.default else "unset", one.help)
        for one in env.VARIABLES.values()
    )
    return table(("Variable", "Default", "Meaning"), rows)


def written(slug: str, parts: dict[str, str]) -> str:
    """The file of a page with its computed parts. Raises KeyError for a part that has no such name."""
    text = documents.source(slug)
    if unknown := [name for name in documents.part_names(text) if name not in parts]:
        raise KeyError(f"{slug}.md: no part {unknown[0]!r}")
    return documents.filled(text, parts)


class Command(BaseCommand):
    help = "Write the generated parts of frontend/docs (settings, telemetry fields, senders), in a checkout."

    requires_system_checks: list[str] = []  # noqa: RUF012  # Django declares it so

    def handle(self, *args: Any, **options: Any) -> None:
        parts = default_parts()
        for one in SENDERS:
            if not (path := documents.ROOT / f"integrate/{one.slug}.md").exists():
                path.write_text(f"<!-- = sender {one.slug} -->\n<!-- / -->\n", encoding="utf-8")
        for slug in (documents.CONTENTS, *sorted(documents.slugs())):
            try:
                text = written(slug, parts)
            except KeyError as error:
                raise CommandError(str(error.args[0])) from error
            if text != documents.source(slug):
                (documents.ROOT / f"{slug}.md").write_text(text, encoding="utf-8")
                self.stdout.write(f"{slug}.md")
