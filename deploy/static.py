"""Files of the console with their content's hash in their names, so that browsers keep them until they change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # it has no types
    """`manage.py up` collects the files (`collectstatic`) into DOSSIER_HOME. Where nobody did, as in tests and in
    servers started by hand, files are served under their own names from where they lie.
    """

    # Modules import one another by name; an old one must not meet a new one.
    support_js_module_import_aggregation = True
    unused = "django_htmx/ext/"
    """Extensions that no page loads; imports in their comments look like those of modules."""

    def post_process(
        self, paths: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Iterator[tuple[str, str, bool]]:
        wanted = {name: place for name, place in paths.items() if not name.startswith(self.unused)}
        yield from super().post_process(wanted, *args, **kwargs)

    def stored_name(self, name: str) -> str:
        if not self.hashed_files:
            return name
        found: str = super().stored_name(name)
        return found


def collect() -> None:
    """Collect the files of the console, unless they are those that were collected last."""
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    stamp, now = settings.HOME.root / "static.collected", _digest()
    if stamp.exists() and stamp.read_text() == now:
        return
    call_command("collectstatic", verbosity=0, interactive=False)
    stamp.write_text(now)


def _digest() -> str:
    """Of the names, sizes and times of what would be collected."""
    seen = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list([]):
            seen.update(
                f"{storage.path(name)} {storage.size(name)} {storage.get_modified_time(name)}\n".encode()
            )
    return seen.hexdigest()
