"""Neighbours as LLDP sees them, made into a graph. Pure.

The output of `lldpcli show neighbors -f json` (lldpd) of one machine a file. It does not name the machine: the caller
does. A host needs the switches that it is connected to; between two switches LLDP does not say which needs which, so
that the connection is a `link/A~B`, which needs both of its ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from ingest.telemetry.kinds.declare import is_component

FORWARDS = frozenset({"Bridge", "Router"})
"""Capabilities of a switch."""
SWITCH, HOST = "switch", "host"


def add(found: Graph, name: str, body: bytes, machine: str) -> None:
    """The neighbours of `machine`, a host unless it is `kind/name`. Raises InvalidTopologyError."""
    own = machine if is_component(machine) else component(f"{name}, machine", HOST, machine)
    interfaces = mapping(f"{name}, lldp", mapping(name, payload(name, body)).get("lldp")).get("interface")
    found.node(own)
    unnamed = seen = 0
    for where, neighbour in _neighbours(f"{name}, lldp.interface", interfaces):
        seen += 1
        unnamed += not _connect(found, where, neighbour, own)
    if not seen:
        found.notes.append(f"{own} has no neighbours")
    if unnamed:
        found.notes.append(f"{own}: {counted(unnamed, 'neighbour')} without a name left out")


def _neighbours(where: str, value: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each neighbour with its interface: lldpd writes a list of objects with one key, or one object for one."""
    if isinstance(value, dict):
        value = [{key: one} for key, one in value.items()]
    for place, one in sequence(where, value):
        for interface, neighbour in mapping(place, one).items():
            yield f"{place}.{interface}", mapping(f"{place}.{interface}", neighbour)


def _connect(found: Graph, where: str, neighbour: Mapping[str, Any], own: str) -> bool:
    """Whether the neighbour has a name."""
    chassis = optional(f"{where}.chassis", neighbour.get("chassis"))
    named = next(((key, one) for key, one in chassis.items() if isinstance(one, dict) and "id" in one), None)
    if named is None:
        return False
    about = named[1]
    enabled = {
        capability.get("type")
        for place, one in _capabilities(f"{where}.chassis", about.get("capability"))
        if (capability := mapping(place, one)).get("enabled") is True
    }
    kind = SWITCH if enabled & FORWARDS else HOST
    other = component(f"{where}.chassis", kind, text(f"{where}.chassis", named[0]))
    if own.partition("/")[2] == other.partition("/")[2]:
        return True
    address = about.get("mgmt-ip")
    found.label(other, mgmt_ip=address[0] if isinstance(address, list) and address else address)
    if own.startswith(f"{SWITCH}/") == (kind == SWITCH):
        found.link(where, own, other)
    elif kind == SWITCH:
        found.node(own).depends_on.add(other)
    else:
        found.node(other).depends_on.add(own)
    return True


def _capabilities(where: str, value: object) -> Iterator[tuple[str, Any]]:
    return sequence(f"{where}.capability", [value] if isinstance(value, dict) else value)


def machine_of(name: str) -> str:
    """The machine that a file is named after: `tor-1` of `neighbours/tor-1.json`."""
    stem = name.replace("\\", "/").rpartition("/")[2].removesuffix(".gz").removesuffix(".json")
    if not stem:
        raise InvalidTopologyError(name, "is named after no machine; add --node NAME")
    return stem
