"""Layers of a schedule as a form without script shows and reads them: plain fields, times of the week as lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from incidents.domain.oncall.layers import DAYS, MOST_LAYERS

UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_LINE = re.compile(r"([a-z ,]+?)\s+([0-9:]+)\s*[-–]\s*([0-9:]+)")


def as_fields(layers: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Fields of each layer, and those of an empty one to add."""
    shown = [_fields(one) for one in layers]
    empty = {"name": "", "people": "", "start": "", "end": "", "every": "1", "unit": "w", "times": ""}
    return [*shown, {**empty, "time_zone": "", "holidays": "include"}]


def first_layer(today: date) -> dict[str, str]:
    """The layer that the form of a new schedule begins with: weeks from this week's Monday at 09:00 on."""
    monday = today - timedelta(days=today.weekday())
    return {**as_fields([])[0], "name": "primary", "start": f"{monday}T09:00"}


def _fields(layer: Mapping[str, Any]) -> dict[str, str]:
    turn = str(layer["turn"])
    return {
        "name": layer["name"],
        "people": ", ".join(layer["people"]),
        "start": layer["start"],
        "end": layer.get("end") or "",
        "every": turn[:-1],
        "unit": turn[-1],
        "times": "\n".join(
            f"{' '.join(one['days'])} {one['from']}-{one['to']}" for one in layer.get("times", [])
        ),
        "time_zone": layer.get("time_zone") or "",
        "holidays": layer.get("holidays", "include"),
    }


def typed(form: Mapping[str, str]) -> list[dict[str, str]]:
    """The fields of each layer as they were typed, without empty ones and those that are to be removed."""
    names = as_fields([])[0]
    found = [
        {name: str(form.get(f"layer-{place}-{name}", default)) for name, default in names.items()}
        for place in range(MOST_LAYERS + 1)
        if form.get(f"layer-{place}-remove") != "on"
    ]
    return [one for one in found if any(one[name].strip() for name in ("name", "people", "start", "times"))]


def read(fields: Mapping[str, str]) -> dict[str, Any]:
    """A layer from its fields; only its lines are checked. Raises ValueError with what would be right."""
    layer: dict[str, Any] = {
        "name": fields["name"].strip(),
        "people": [one for one in re.split(r"[,;\s]+", fields["people"]) if one],
        "start": fields["start"].strip(),
        "turn": f"{fields['every'].strip()}{fields['unit']}",
    }
    if times := [_times(line) for line in fields["times"].splitlines() if line.strip()]:
        layer["times"] = times
    for name in ("end", "time_zone"):
        if fields[name].strip():
            layer[name] = fields[name].strip()
    if fields["holidays"] != "include":
        layer["holidays"] = fields["holidays"]
    return layer


def _times(line: str) -> dict[str, Any]:
    found = _LINE.fullmatch(line.strip().lower())
    days = re.split(r"[ ,]+", found[1].strip(" ,")) if found else []
    if found is None or not all(day in DAYS for day in days):
        raise ValueError(
            f"{line.strip()[:60]!r} must be days and hours, such as: mon tue wed thu fri 18:00-09:00"
        )
    return {"days": days, "from": found[2], "to": found[3]}
