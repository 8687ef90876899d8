"""The files of the console as `manage.py up` collects them."""

from __future__ import annotations

import json
from pathlib import Path

from django.core.management import call_command
from pytest_django import Settings


def test_the_files_that_pages_load_are_collected_under_names_with_a_hash(
    settings: Settings, tmp_path: Path
) -> None:
    settings.STATIC_ROOT = tmp_path
    call_command("collectstatic", verbosity=0, interactive=False)
    named = json.loads((tmp_path / "staticfiles.json").read_text())["paths"]
    for name in ("dossier/console.js", "dossier/console.css", "django_htmx/htmx-2.min.js"):
        assert named[name] != name
        assert (tmp_path / named[name]).exists()
