"""Exports of Backstage, Kubernetes, NetBox and LLDP become topology rows."""

import json
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from ingest.integrations.topology import backstage, kubernetes, lldp, netbox
from ingest.integrations.topology.graph import Graph, InvalidTopologyError
from ingest.telemetry.decode.body import decode_array
from ingest.telemetry.decode.columns import Bounds
from ingest.telemetry.kinds import KINDS

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
CATALOG = b"""
apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: Checkout}
spec:
  type: service
  lifecycle: production
  owner: group:payments-team
  system: shop
  dependsOn: ["resource:orders-db", "component:billing/invoices", "resource:gone"]
  providesApis: [checkout-api]
---
kind: Resource
metadata: {name: orders-db}
spec: {type: database, owner: storage}
---
kind: Component
metadata: {name: invoices, namespace: billing}
spec: {type: service, consumesApis: ["api:default/checkout-api"]}
---
kind: System
metadata: {name: shop}
spec: {domain: retail}
---
kind: Domain
metadata: {name: retail}
---
kind: API
metadata: {name: checkout-api}
spec: {type: openapi}
---
kind: Group
metadata: {name: payments-team}
"""


def rows(found: Graph) -> dict[str, dict[str, Any]]:
    """Columns of each component beside its name and time."""
    made = {}
    for row in found.rows(AT):
        assert row.pop("time") == "2026-03-01T12:00:00Z"
        made[row.pop("component")] = row
    return made


def dumped(value: object) -> bytes:
    return json.dumps(value).encode()


# Backstage
# ----------------------------------------------------------------------------------------------------------
def test_a_catalog_has_parents_needs_and_teams() -> None:
    found = backstage.graph([("catalog-info.yaml", CATALOG)])
    assert rows(found) == {
        "api/checkout-api": {"depends_on": ["service/checkout"]},
        "database/orders-db": {"labels": {"team": "storage"}},
        "domain/retail": {},
        "service/billing/invoices": {"depends_on": ["api/checkout-api"]},
        "service/checkout": {
            "parents": ["system/shop"],
            "depends_on": ["database/orders-db", "service/billing/invoices"],
            "labels": {"lifecycle": "production", "team": "payments-team"},
        },
        "system/shop": {"parents": ["domain/retail"]},
    }
    assert found.notes == [
        "1 object of other kinds, such as Group or Location, left out",
        "1 reference to entities that no file has left out: resource:default/gone",
    ]


def test_relations_of_the_catalogs_api_are_read() -> None:
    entities = [
        {"kind": "System", "metadata": {"name": "shop"}},
        {
            "kind": "Component",
            "metadata": {"name": "cart"},
            "spec": {"type": "service"},
            "relations": [
                {"type": "partOf", "targetRef": "system:default/shop"},
                {"type": "ownedBy", "targetRef": "group:default/web"},
                {"type": "unknown", "targetRef": 1},
            ],
        },
    ]
    for value in (entities, {"items": entities}):
        found = rows(backstage.graph([("entities.json", dumped(value))]))
        assert found["service/cart"] == {"parents": ["system/shop"], "labels": {"team": "web"}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b"kind: Component\nmetadata: {name: a}\nspec: {dependsOn: [x y]}",
            r"spec.dependsOn\[0\]: 'x y' is not a",
        ),
        (
            b"kind: Component\nmetadata: {name: a}\nspec: {dependsOn: b}",
            "spec.dependsOn: must be a list, not a",
        ),
        (b"kind: Component\nmetadata: {}", "metadata.name: must be a text, not null"),
        (b"kind: [", "line 1: is neither YAML nor JSON"),
        (b'{"kind":', "^a.yaml: is not JSON"),
        (b"kind: Group\nmetadata: {name: a}", "no entity of the kinds Component"),
        (b"kind: Component\nmetadata: {name: a}\nspec: {type: 5}", "spec.type: must be a text"),
        (b"\xff\xfe\x00", "neither YAML nor JSON"),
        (b"just text", "must be an object"),
    ],
)
def test_a_bad_catalog_is_refused_with_the_place(body: bytes, message: str) -> None:
    with pytest.raises(InvalidTopologyError, match=message):
        backstage.graph([("a.yaml", body)])


# Kubernetes
# ----------------------------------------------------------------------------------------------------------
def of(kind: str, name: str, owner: tuple[str, str] | None = None, **more: Any) -> dict[str, Any]:
    about: dict[str, Any] = {"name": name, "namespace": "shop", **more.pop("metadata", {})}
    if owner is not None:
        about["ownerReferences"] = [{"kind": owner[0], "name": owner[1]}]
    return {"kind": kind, "metadata": about, **more}


def test_a_pod_is_in_its_node_and_its_deployment() -> None:
    zone = {kubernetes.ZONE: "z1", kubernetes.REGION: "r1"}
    items = [
        {"kind": "Node", "metadata": {"name": "n1", "labels": zone}},
        of("Deployment", "cart", metadata={"labels": {"app": "cart", "team": "web"}}),
        of("ReplicaSet", "cart-7f", ("Deployment", "cart")),
        of("Pod", "cart-7f-x", ("ReplicaSet", "cart-7f"), spec={"nodeName": "n1"}),
        of("Pod", "lonely", ("ReplicaSet", "unknown"), spec={"nodeName": "n2"}),
        of("Pod", "ended", spec={"nodeName": "n1"}, status={"phase": "Succeeded"}),
        of("ConfigMap", "settings"),
    ]
    found = kubernetes.graph([("all.json", dumped({"kind": "List", "items": items}))])
    made = rows(found)
    assert made["pod/shop/cart-7f-x"]["parents"] == ["deployment/shop/cart", "node/n1"]
    assert made["pod/shop/lonely"]["parents"] == ["node/n2", "replicaset/shop/unknown"]
    assert made["deployment/shop/cart"]["labels"] == {"app": "cart", "namespace": "shop", "team": "web"}
    assert (made["node/n1"], made["zone/z1"]) == ({"parents": ["zone/z1"]}, {"parents": ["region/r1"]})
    assert "pod/shop/ended" not in made
    assert found.notes == ["1 pod that ended left out", "1 object of other kinds left out"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "has neither `items` nor `kind`"),
        ([], "must be an object"),
        ({"kind": "List", "items": {}}, "items: must be a list"),
        ({"kind": "List", "items": []}, "no Node and no Pod"),
        ({"kind": "NodeList", "items": [{"metadata": {}}]}, r"items\[0\], metadata.name: must be a text"),
        (of("Pod", "a", spec={"nodeName": 5}), "spec.nodeName: must be a text"),
    ],
)
def test_bad_objects_are_refused_with_the_place(value: object, message: str) -> None:
    with pytest.raises(InvalidTopologyError, match=message):
        kubernetes.graph([("all.json", dumped(value))])


# NetBox
# ----------------------------------------------------------------------------------------------------------
def record(endpoint: str, id_: int, **more: Any) -> dict[str, Any]:
    return {"id": id_, "url": f"https://netbox.example.com/api/dcim/{endpoint}/{id_}/", **more}


def device(id_: int, name: str | None, role: str, **more: Any) -> dict[str, Any]:
    site, rack = {"name": "Berlin 1", "slug": "berlin-1"}, {"name": "R 12"}
    return record("devices", id_, name=name, role={"slug": role}, site=site, rack=rack, **more)


def end(type_: str, device_id: int) -> list[dict[str, Any]]:
    return [{"object_type": type_, "object": {"device": {"id": device_id}}}]


def test_devices_are_in_racks_and_cables_connect_them() -> None:
    results = [
        device(1, "gpu-1", "server", device_type={"model": "DGX"}, status={"value": "active"}),
        device(2, "leaf-1", "leaf"),
        device(3, None, "pdu"),
        device(4, "spare", "server", status={"value": "planned"}),
        record("cables", 1, a_terminations=end("dcim.interface", 1), b_terminations=end("dcim.interface", 2)),
        record(
            "cables", 2, a_terminations=end("dcim.poweroutlet", 3), b_terminations=end("dcim.powerport", 1)
        ),
        record("cables", 3, a_terminations=end("dcim.interface", 1), b_terminations=[]),
    ]
    body = dumped(
        {"count": 7, "next": "https://netbox.example.com/api/dcim/devices/?offset=7", "results": results}
    )
    found = netbox.graph([("page.json", body)])
    made = rows(found)
    assert made["server/gpu-1"] == {
        "parents": ["rack/berlin-1/R-12"],
        "depends_on": ["pdu/id-3"],
        "labels": {"model": "DGX", "status": "active"},
    }
    assert made["rack/berlin-1/R-12"] == {"parents": ["site/berlin-1"]}
    assert made["link/gpu-1~leaf-1"] == {"depends_on": ["leaf/leaf-1", "server/gpu-1"]}
    assert "server/spare" not in made
    assert [note.split(" ")[0] for note in found.notes] == ["page.json", "1", "1"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"detail": "no"}, "has no `results`"),
        ({"results": []}, "no device, rack or cable"),
        (
            {"results": [{"url": "https://x/api/ipam/prefixes/1/"}]},
            r"results\[0\].url: .* is of none of devices",
        ),
        ({"results": [device(1, "a", "leaf") | {"rack": "R"}]}, "rack: must be an object"),
        ({"results": [device(1, "a", "5")]}, "'5/a' is not a component"),
    ],
)
def test_bad_records_are_refused_with_the_place(value: object, message: str) -> None:
    with pytest.raises(InvalidTopologyError, match=message):
        netbox.graph([("page.json", dumped(value))])


# LLDP
# ----------------------------------------------------------------------------------------------------------
def neighbour(name: str, *capabilities: str) -> dict[str, Any]:
    about: dict[str, Any] = {"id": {"type": "mac", "value": "00:00:5e:00:53:01"}, "mgmt-ip": "192.0.2.1"}
    about["capability"] = [{"type": one, "enabled": True} for one in capabilities]
    return {"via": "LLDP", "chassis": {name: about}, "port": {"id": {"type": "ifname", "value": "Ethernet1"}}}


def seen(machine: str, *interfaces: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = Graph()
    listed: Any = interfaces[0] if len(interfaces) == 1 else list(interfaces)
    lldp.add(found, "a.json", dumped({"lldp": {"interface": listed}}), machine)
    return rows(found)


def test_a_host_needs_the_switches_that_it_sees() -> None:
    found = seen(
        "gpu-1", {"eth0": neighbour("leaf-1", "Bridge")}, {"eth1": neighbour("leaf-2", "Router", "Bridge")}
    )
    assert found["host/gpu-1"] == {"depends_on": ["switch/leaf-1", "switch/leaf-2"]}
    assert found["switch/leaf-1"] == {"labels": {"mgmt_ip": "192.0.2.1"}}


def test_a_single_neighbour_and_one_without_capabilities_are_read() -> None:
    assert seen("gpu-1", {"eth0": neighbour("leaf-1", "Bridge")})["host/gpu-1"] == {
        "depends_on": ["switch/leaf-1"]
    }
    assert seen("switch/leaf-1", {"e1": neighbour("gpu-1")})["host/gpu-1"]["depends_on"] == ["switch/leaf-1"]


def test_two_switches_are_ends_of_a_link() -> None:
    found = seen(
        "switch/leaf-1", {"e1": neighbour("spine-1", "Router")}, {"e2": neighbour("spine-1", "Router")}
    )
    assert found["link/leaf-1~spine-1"] == {"depends_on": ["switch/leaf-1", "switch/spine-1"]}
    assert found["switch/leaf-1"] == {}


def test_a_neighbour_without_a_name_is_left_out_with_a_note() -> None:
    found = Graph()
    body = {"lldp": {"interface": {"eth0": {"chassis": {"id": {"type": "mac", "value": "x"}}}}}}
    lldp.add(found, "a.json", dumped(body), "gpu-1")
    lldp.add(found, "b.json", dumped({"lldp": {}}), "gpu-2")
    assert found.notes == ["host/gpu-1: 1 neighbour without a name left out", "host/gpu-2 has no neighbours"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "lldp: must be an object, not null"),
        ({"lldp": {"interface": "eth0"}}, "interface: must be a list"),
        ({"lldp": {"interface": [{"eth0": 1}]}}, r"interface\[0\].eth0: must be an object"),
    ],
)
def test_bad_neighbours_are_refused_with_the_place(value: object, message: str) -> None:
    with pytest.raises(InvalidTopologyError, match=message):
        lldp.add(Graph(), "a.json", dumped(value), "gpu-1")


# Command
# ----------------------------------------------------------------------------------------------------------
def converted(*words: str) -> str:
    """Messages of the command beside its rows, and its exit code if there is one."""
    written = StringIO()
    try:
        call_command("convert", "topology", *words, stderr=written)
    except SystemExit as error:
        written.write(f"exit {error.code}")
    return written.getvalue()


def test_the_command_writes_rows_that_the_telemetry_kind_takes(tmp_path: Path) -> None:
    file, out = tmp_path / "catalog-info.yaml", tmp_path / "topology.ndjson"
    file.write_bytes(CATALOG)
    written = converted("--from", "backstage", str(file), "--out", str(out), "--time", "2026-03-01T12:00:00Z")
    assert "note: 6 rows: 1 api, 1 database, 1 domain, 2 service, 1 system" in written
    body = b"[" + b",".join(out.read_bytes().splitlines()) + b"]"
    assert decode_array(KINDS["topology"], body, "default", Bounds()).count == 6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.json"], "--from is missing; it must be one of backstage, kubernetes, netbox, lldp"),
        (["--from", "lldp", "--node", "x", "a.json", "b.json"], "--node NAME: goes with one file"),
        (["--from", "netbox", "/nowhere/a.json"], "/nowhere/a.json: cannot be read"),
    ],
)
def test_wrong_words_are_named_on_one_line(words: list[str], message: str) -> None:
    written = converted(*words)
    assert written.startswith(message)
    assert written.endswith("\nexit 2")


def test_a_file_of_neighbours_is_named_after_its_machine() -> None:
    assert lldp.machine_of("neighbours/tor-1.dc1.json.gz") == "tor-1.dc1"
