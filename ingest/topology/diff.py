"""Rows of a topology against the one in force: components added, changed and gone. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ingest.topology.read import Component

Row = Mapping[str, Any]
FIELDS: Final = ("parents", "depends_on", "labels")


@dataclass(frozen=True, slots=True)
class Changed:
    """A component before and after, its fields as rows have them; None: not in force."""

    component: str
    before: Row | None
    after: Row | None

    @property
    def differences(self) -> list[tuple[str, Any, Any]]:
        """Fields that differ, with both values."""
        was, would = self.before or {}, self.after or {}
        return [(name, was.get(name), would.get(name)) for name in FIELDS if was.get(name) != would.get(name)]

    def as_json(self) -> dict[str, Any]:
        return {"component": self.component, "before": self.before, "after": self.after}


def diff(in_force: Mapping[str, Component], rows: Iterable[Row]) -> list[Changed]:
    """Changes that the rows would make, by name. Gone are components of kinds of the rows that none names."""
    after = {row["component"]: row for row in rows}
    kinds = {name.partition("/")[0] for name in after}
    found = []
    for name in sorted(in_force.keys() | after.keys()):
        one, row = in_force.get(name), after.get(name)
        if row is None and name.partition("/")[0] not in kinds:
            continue
        before = None if one is None else _fields(one.parents, one.depends_on, one.labels)
        active = row is not None and row.get("active") is not False
        new = (
            _fields(row.get("parents") or (), row.get("depends_on") or (), row.get("labels") or {})
            if row is not None and active
            else None
        )
        if before != new:
            found.append(Changed(name, before, new))
    return found


def _fields(parents: Sequence[str], depends_on: Sequence[str], labels: Mapping[str, str]) -> Row:
    return {
        "parents": sorted(parents),
        "depends_on": sorted(depends_on),
        "labels": dict(sorted(labels.items())),
    }


def summary(changes: Sequence[Changed]) -> str:
    """Counts by sign and kind, in words."""
    signs = Counter((sign_of(one), one.component.partition("/")[0]) for one in changes)
    words = {"+": "added", "~": "changed", "-": "gone"}
    parts = []
    for sign, word in words.items():
        kinds = [f"{count} {kind}" for (its, kind), count in sorted(signs.items()) if its == sign]
        if kinds:
            parts.append(f"{word}: {', '.join(kinds)}")
    return "; ".join(parts) if parts else "nothing differs"


def sign_of(one: Changed) -> str:
    return "+" if one.before is None else "-" if one.after is None else "~"
