"""Files of another system's configuration, read for `manage.py config import`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.utils import timezone

from incidents.domain.importers.alertmanager import alertmanager
from incidents.domain.importers.draft import Draft, InvalidImportError
from incidents.domain.importers.grafana_oncall import grafana_oncall
from incidents.domain.importers.opsgenie import opsgenie
from incidents.domain.importers.pagerduty import pagerduty

_EXPORTS: Final = {"opsgenie": opsgenie, "pagerduty": pagerduty, "grafana-oncall": grafana_oncall}
SYSTEMS: Final = ("alertmanager", *_EXPORTS)
MOST_BYTES: Final = 50 * 2**20


def imported(system: str, paths: Sequence[str], integration: str = "") -> Draft:
    """Configuration that the files become. Folders stand for the JSON files in them. Raises InvalidImportError."""
    if system == "alertmanager":
        if len(paths) != 1:
            raise InvalidImportError("alertmanager: one file, its alertmanager.yml")
        return alertmanager(_text(Path(paths[0])), integration)
    if integration:
        raise InvalidImportError("--integration is for alertmanager only")
    files = {str(path): _parsed(path) for given in paths for path in _each(Path(given))}
    accounts = get_user_model().objects.exclude(email="").values_list("email", "username")
    return _EXPORTS[system](files, {mail.lower(): name for mail, name in accounts}, timezone.now())


def exports(variables: Mapping[str, str]) -> str:
    """Lines for a shell. Those without a value are to be filled in.

    >>> exports({"A": "it's", "B": ""})
    "export A='it'\"'\"'s'\\n# export B=\\n"
    """
    return "".join(
        f"export {name}={shlex.quote(value)}\n" if value else f"# export {name}=\n"
        for name, value in variables.items()
    )


def _each(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.rglob("*.json"))
    if not found:
        raise InvalidImportError(f"{path}: there is no .json file in it")
    return found


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InvalidImportError(f"{path}: is larger than {MOST_BYTES >> 20} MiB")
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidImportError(f"{path}: cannot be read: {error}") from None


def _parsed(path: Path) -> Any:
    try:
        return json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise InvalidImportError(f"{path}: is not valid JSON: {error}") from None
