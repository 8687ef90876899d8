"""Objects of Kubernetes, made into a graph. Pure.

The answer of `kubectl get nodes,pods,… -A -o json`: a List, or one object. A pod is contained in its node and in the
workload that owns it, through ReplicaSets and Jobs to the Deployment or CronJob where the file has them; a node in its
zone, a zone in its region (https://kubernetes.io/docs/reference/labels-annotations-taints/). Pods that have ended are
left out.
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

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
WORKLOADS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"})
_BETWEEN = frozenset({"ReplicaSet", "Job"})
"""Owners that are themselves owned by what people know."""
_LABELS = {"app": ("app.kubernetes.io/name", "app"), "team": ("team", "owner")}
Owner = tuple[str, str, str]


def graph(files: Sequence[tuple[str, bytes]]) -> Graph:
    """Of all files, each with its name. Raises InvalidTopologyError."""
    objects = [one for name, body in files for one in _objects(name, body)]
    owners: dict[Owner, Owner] = {}
    for where, one in objects:
        if one.get("kind") in _BETWEEN and (above := _owner(where, one)) is not None:
            about = mapping(f"{where}, metadata", one.get("metadata"))
            owners[one["kind"], above[1], text(f"{where}, metadata.name", about.get("name"))] = above
    found, others, ended = Graph(), 0, 0
    for where, one in objects:
        kind = one.get("kind")
        if kind == "Node":
            _node(found, where, one)
        elif kind == "Pod":
            ended += not _pod(found, where, one, owners)
        elif kind in WORKLOADS - _BETWEEN:
            _workload(found, where, one)
        else:
            others += kind not in _BETWEEN
    if not found.nodes:
        raise InvalidTopologyError(
            ", ".join(name for name, _ in files),
            "no Node and no Pod that runs; export with kubectl get nodes,pods -A -o json",
        )
    if ended:
        found.notes.append(f"{counted(ended, 'pod')} that ended left out")
    if others:
        found.notes.append(f"{counted(others, 'object')} of other kinds left out")
    return found


def _objects(name: str, body: bytes) -> list[tuple[str, Mapping[str, Any]]]:
    value = mapping(name, payload(name, body))
    if "items" not in value:
        if "kind" not in value:
            raise InvalidTopologyError(
                name, "has neither `items` nor `kind`; it must be the output of kubectl get -o json"
            )
        return [(name, value)]
    # Items of a typed list, such as a PodList of the API, have no kind of their own.
    kind = str(value.get("kind", "")).removesuffix("List")
    return [
        (where, {"kind": kind, **mapping(where, one)})
        for where, one in sequence(f"{name}, items", value["items"])
    ]


def _about(where: str, one: Mapping[str, Any]) -> tuple[Mapping[str, Any], str, str]:
    """Metadata, namespace, name."""
    about = mapping(f"{where}, metadata", one.get("metadata"))
    name = text(f"{where}, metadata.name", about.get("name"))
    return about, str(about.get("namespace") or "default"), name


def _owner(where: str, one: Mapping[str, Any]) -> Owner | None:
    about, namespace, _ = _about(where, one)
    for place, value in sequence(f"{where}, metadata.ownerReferences", about.get("ownerReferences")):
        owner = mapping(place, value)
        if owner.get("kind") in WORKLOADS:
            return str(owner["kind"]), namespace, text(f"{place}.name", owner.get("name"))
    return None


def _node(found: Graph, where: str, one: Mapping[str, Any]) -> None:
    about, _, name = _about(where, one)
    labels = optional(f"{where}, metadata.labels", about.get("labels"))
    node = component(where, "node", name)
    place = None
    for kind, label in (("region", REGION), ("zone", ZONE)):
        if labels.get(label):
            inner = component(f"{where}, label {label}", kind, text(where, labels[label]))
            found.node(inner).parents |= {place} if place else set()
            place = inner
    found.node(node).parents |= {place} if place else set()
    found.label(node, instance_type=labels.get("node.kubernetes.io/instance-type"))


def _pod(found: Graph, where: str, one: Mapping[str, Any], owners: Mapping[Owner, Owner]) -> bool:
    """Whether the pod runs, or is about to."""
    about, namespace, name = _about(where, one)
    if optional(f"{where}, status", one.get("status")).get("phase") in ("Succeeded", "Failed"):
        return False
    pod = component(where, "pod", f"{namespace}/{name}")
    node = optional(f"{where}, spec", one.get("spec")).get("nodeName")
    if node is not None:
        machine = component(f"{where}, spec.nodeName", "node", text(f"{where}, spec.nodeName", node))
        found.node(machine)
        found.node(pod).parents.add(machine)
    if (owner := _owner(where, one)) is not None:
        owner = owners.get(owner, owner)
        workload = component(where, owner[0].lower(), f"{owner[1]}/{owner[2]}")
        found.node(pod).parents.add(workload)
        found.label(workload, namespace=namespace)
    _labelled(found, pod, where, about, namespace)
    return True


def _workload(found: Graph, where: str, one: Mapping[str, Any]) -> None:
    about, namespace, name = _about(where, one)
    _labelled(
        found, component(where, str(one["kind"]).lower(), f"{namespace}/{name}"), where, about, namespace
    )


def _labelled(found: Graph, name: str, where: str, about: Mapping[str, Any], namespace: str) -> None:
    labels = optional(f"{where}, metadata.labels", about.get("labels"))
    known = {
        ours: next((labels[one] for one in theirs if labels.get(one)), None)
        for ours, theirs in _LABELS.items()
    }
    found.label(name, namespace=namespace, **known)
