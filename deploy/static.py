"""Files of the console with their content's hash in their names, so that browsers keep them until they change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
