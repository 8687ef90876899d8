"""The telemetry kinds: every module of this package that defines `KIND`."""

from __future__ import annotations

import importlib
import pkgutil

from ingest.telemetry.kinds.declare import (
    After,
    AtMost,
    Check,
    Field,
    FieldType,
    Kind,
    NoMoreThan,
    NotEmptyWhile,
)

__all__ = ["KINDS", "After", "AtMost", "Check", "Field", "FieldType", "Kind", "NoMoreThan", "NotEmptyWhile"]


def _declared() -> dict[str, Kind]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "declare")
    kinds = [importlib.import_module(f"{__name__}.{name}").KIND for name in names]
    return {kind.name: kind for kind in kinds}


KINDS: dict[str, Kind] = _declared()
