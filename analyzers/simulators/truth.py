"""`truth.json`: what a scenario planted. One schema for all, checked when a scenario is written.

```
{"scenario": its name, "seed": the number it was made from, "start": ..., "end": ...,      the span of its rows
 "faults": [{"component": "kind/name", "kind": what is wrong with it, "start": ..., "end": ..., ...}],
 "benign": [{"kind": what happened that is nobody's fault, "start": ..., "end": ...}], ...}
```

Instants are RFC 3339 in UTC, every fault and event lies within the scenario, a healthy scenario has no faults, and one
component has a kind of fault once. What else a scenario has to tell (a severity, a link's class, stories) stands beside
these.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

REQUIRED = ("scenario", "seed", "start", "end", "faults", "benign")
OF_A_FAULT = ("component", "kind", "start", "end")


def happened(event: str, start: str, end: str) -> list[dict[str, str]]:
    """The entries of `benign` for one event from `start` to `end`; none for an empty text."""
    return [{"kind": event, "start": start, "end": end}] if event else []


def check_truth(truth: Mapping[str, Any]) -> None:
    """Raise ValueError, naming the entry and what would be right, for a truth that breaks the schema."""
    missing = [key for key in REQUIRED if key not in truth]
    if missing:
        raise ValueError(f"truth: {', '.join(missing)} missing; there must be {', '.join(REQUIRED)}")
    where = f"truth of {truth['scenario']!r}"
    if not isinstance(truth["seed"], int) or isinstance(truth["seed"], bool) or truth["seed"] < 0:
        raise ValueError(f"{where}: seed {truth['seed']!r} is not a whole number of 0 or more")
    start, end = _span(truth, where)
    seen: set[tuple[str, str]] = set()
    for number, fault in enumerate(truth["faults"]):
        of = f"{where}, faults[{number}]"
        _check_fault(fault, of, start, end)
        key = fault["component"], fault["kind"]
        if key in seen:
            raise ValueError(f"{of}: {key[0]} has the fault {key[1]!r} already")
        seen.add(key)
    for number, event in enumerate(truth["benign"]):
        _check_kind_and_span(event, f"{where}, benign[{number}]", start, end)


def _check_fault(fault: Mapping[str, Any], where: str, start: datetime, end: datetime) -> None:
    missing = [key for key in OF_A_FAULT if key not in fault]
    if missing:
        raise ValueError(f"{where}: {', '.join(missing)} missing; there must be {', '.join(OF_A_FAULT)}")
    kind, slash, name = str(fault["component"]).partition("/")
    if not (kind and slash and name):
        raise ValueError(f"{where}: component {fault['component']!r} is not `kind/name`")
    _check_kind_and_span(fault, where, start, end)


def _check_kind_and_span(entry: Mapping[str, Any], where: str, start: datetime, end: datetime) -> None:
    if not isinstance(entry["kind"], str) or not entry["kind"]:
        raise ValueError(f"{where}: kind {entry['kind']!r} is not a word")
    first, last = _span(entry, where)
    if first < start or last > end:
        raise ValueError(f"{where}: {first} to {last} is not within the scenario, {start} to {end}")


def _span(entry: Mapping[str, Any], where: str) -> tuple[datetime, datetime]:
    start, end = _instant(entry["start"], where), _instant(entry["end"], where)
    if start >= end:
        raise ValueError(f"{where}: it ends at {end}, which is not after its start at {start}")
    return start, end


def _instant(value: object, where: str) -> datetime:
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"{where}: {value!r} is not an RFC 3339 instant") from None
    if instant.utcoffset() != timedelta(0):
        raise ValueError(f"{where}: {value!r} is not in UTC (an instant ends in Z)")
    return instant.astimezone(UTC)
