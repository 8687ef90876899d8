"""The form of a mapping that is ready to be stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

ADDRESS: Final = "https://dossier.example.com/integrations/generic/KEY"


@dataclass(frozen=True, slots=True)
class Preset:
    """A sender's mapping, and its configuration: what to paste where."""

    name: str
    title: str
    mapping: Mapping[str, Any]
    configuration: tuple[tuple[str, str], ...]
    recognised_by: tuple[tuple[str, ...], ...] = ()
    """Paths: a payload that has all of one of these is this sender's."""

    def configured(self, address: str) -> tuple[tuple[str, str], ...]:
        """The configuration with the address of an integration in it."""
        return tuple((where, text.replace(ADDRESS, address)) for where, text in self.configuration)
