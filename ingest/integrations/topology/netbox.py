"""Devices, racks and cables of NetBox, made into a graph. Pure.

Answers of `/api/dcim/devices/`, `/api/dcim/racks/` and `/api/dcim/cables/`, one file a page. The kind of a component is
the role of the device; a device is contained in its rack, a rack in its site. A power cable says which device needs
which; a network cable does not, so that it is a `link/A~B`, which needs both of its ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ingest.integrations.topology.graph import (
    Graph,
    InvalidTopologyError,
    component,
    counted,
    mapping,
    optional,
    payload,
    sequence,
    text,
)

_ENDPOINTS = ("devices", "racks", "cables")
_PORT, _OUTLET, _FEED = "dcim.powerport", "dcim.poweroutlet", "dcim.powerfeed"
_ABSENT = frozenset({"planned", "inventory", "decommissioning"})
Record = tuple[str, Mapping[str, Any]]
End = tuple[str, str]
"""Type of a termination and the component of its device."""


def graph(files: Sequence[tuple[str, bytes]]) -> Graph:
    """Of all files, each with its name. Raises InvalidTopologyError."""
    found = Graph()
    records: dict[str, list[Record]] = {one: [] for one in _ENDPOINTS}
    for name, body in files:
        _read(found, name, body, records)
    if not any(records.values()):
        raise InvalidTopologyError(
            ", ".join(name for name, _ in files),
            "no device, rack or cable; save the answers of /api/dcim/devices/",
        )
    for where, one in records["racks"]:
        _rack(found, where, one)
    devices: dict[object, str] = {}
    absent = sum(not _device(found, where, one, devices) for where, one in records["devices"])
    if absent:
        found.notes.append(
            f"{counted(absent, 'device')} planned, in the inventory or decommissioned left out"
        )
    loose = sum(not _cable(found, where, one, devices) for where, one in records["cables"])
    if loose:
        found.notes.append(f"{counted(loose, 'cable')} without a device of the files at both ends left out")
    return found


def _read(found: Graph, name: str, body: bytes, records: dict[str, list[Record]]) -> None:
    value = payload(name, body)
    listed = value.get("results") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        raise InvalidTopologyError(
            name, "has no `results`; it must be an answer of NetBox's API, or a list of objects"
        )
    if isinstance(value, dict) and value.get("next"):
        found.notes.append(f"{name} is a page of more: save {str(value['next'])[:200]} as well")
    for where, one in sequence(f"{name}, results", listed):
        record = mapping(where, one)
        url = text(f"{where}.url", record.get("url"))
        endpoint = next((one for one in _ENDPOINTS if f"/dcim/{one}/" in url), None)
        if endpoint is None:
            raise InvalidTopologyError(f"{where}.url", f"{url[:100]!r} is of none of {', '.join(_ENDPOINTS)}")
        records[endpoint].append((where, record))


def _site(found: Graph, where: str, one: Mapping[str, Any]) -> tuple[str, str] | None:
    """Name and component of the site."""
    site = optional(f"{where}.site", one.get("site"))
    if not site:
        return None
    name = text(f"{where}.site.name", site.get("slug") or site.get("name"))
    found.node(known := component(f"{where}.site", "site", name))
    return name, known


def _rack_named(found: Graph, where: str, name: object, site: tuple[str, str] | None) -> str:
    """Names of racks are unique in a site alone."""
    rack = text(f"{where}.name", name)
    known = component(where, "rack", f"{site[0]}/{rack}" if site else rack)
    found.node(known).parents |= {site[1]} if site else set()
    return known


def _rack(found: Graph, where: str, one: Mapping[str, Any]) -> None:
    _rack_named(found, where, one.get("name"), _site(found, where, one))


def _device(found: Graph, where: str, one: Mapping[str, Any], devices: dict[object, str]) -> bool:
    """Whether the device is there."""
    status = optional(f"{where}.status", one.get("status")).get("value")
    if status in _ABSENT:
        return False
    role = optional(f"{where}.role", one.get("role") or one.get("device_role"))
    name = one.get("name") or f"id-{one.get('id')}"
    known = component(
        where, str(role.get("slug") or role.get("name") or "device"), text(f"{where}.name", name)
    )
    devices[one.get("id")] = known
    site = _site(found, where, one)
    rack = optional(f"{where}.rack", one.get("rack"))
    above = _rack_named(found, f"{where}.rack", rack.get("name"), site) if rack else site[1] if site else None
    found.node(known).parents |= {above} if above else set()
    model = optional(f"{where}.device_type", one.get("device_type")).get("model")
    tenant = optional(f"{where}.tenant", one.get("tenant")).get("slug")
    found.label(known, model=model, serial=one.get("serial"), team=tenant, status=status)
    return True


def _cable(found: Graph, where: str, one: Mapping[str, Any], devices: Mapping[object, str]) -> bool:
    """Whether it connects two devices of the files."""
    ends = [list(_ends(f"{where}.{side}_terminations", one, side, devices)) for side in ("a", "b")]
    pairs = [(a, b) for a in ends[0] for b in ends[1] if a[1] != b[1]]
    for first, second in pairs:
        power = {first[0]: first[1], second[0]: second[1]}
        if power.keys() == {_PORT, _OUTLET}:
            found.node(power[_PORT]).depends_on.add(power[_OUTLET])
        elif _PORT not in power and _OUTLET not in power and _FEED not in power:
            found.link(where, first[1], second[1])
    return bool(pairs)


def _ends(where: str, one: Mapping[str, Any], side: str, devices: Mapping[object, str]) -> list[End]:
    ends = []
    for place, value in sequence(where, one.get(f"{side}_terminations")):
        end = mapping(place, value)
        device = optional(
            f"{place}.object.device", optional(f"{place}.object", end.get("object")).get("device")
        )
        if (known := devices.get(device.get("id"))) is not None:
            ends.append((str(end.get("object_type")), known))
    return ends
