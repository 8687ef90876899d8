"""Examples for the docs page, made from the declarations so that they cannot disagree with the doors."""

from __future__ import annotations

import json
from typing import Any

# What a person would recognise, by field name; a field that is not here gets an example of its type.
_KNOWN: dict[str, Any] = {
    "components": ["compute_cluster/c3", "tor/dc1-t12", "storage_cluster/s7"],
    "component": "tor/dc1-t12",
    "unit": "vm/v17",
    "parents": ["datacenter/dc1"],
    "depends_on": ["spine/dc1-1"],
    "labels": {"row": "12"},
    "attempts": 200,
    "failures": 3,
    "symptom": "disk_timeout",
    "active": True,
}
_OF_TYPE: dict[str, Any] = {
    "time": "2026-11-21T10:00:00Z",
    "component": "tor/dc1-t12",
    "name": "vm/v17",
    "text": "…",
    "components": ["tor/dc1-t12", "storage_cluster/s7"],
    "count": 1,
    "amount": 1.0,
    "flag": True,
    "labels": {"row": "12"},
}


def example(kind: Any) -> str:
    """One row of a telemetry kind as a line of NDJSON, without its optional fields."""
    row = {
        field.name: _KNOWN.get(field.name, _OF_TYPE[field.type])
        for field in kind.fields
        if not field.optional
    }
    return json.dumps(row)
