"""Orders to a cluster: an object for NVSentinel, lines for Slurm, and commands for people to copy. Pure.

The Kubernetes object has the shape of NVSentinel's `ExternalRemediationRequest` (NVIDIA/NVSentinel,
docs/designs/040-external-remediation-request.md): `spec.healthEvent` is NVSentinel's HealthEvent. The lines for Slurm
are those of scontrol(1). Nothing here is executed by Dossier. Every argument is quoted for a POSIX shell.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from incidents.domain.remediation.state import check_node
from incidents.domain.values import rfc3339

API_VERSION: Final = "nvsentinel.nvidia.com/v1alpha1"
NAMESPACE: Final = "nvsentinel"
TAINT: Final = "nvsentinel.nvidia.com/external-remediation"
LONGEST_REASON: Final = 200
"""Characters of a reason in a command."""
_KUBERNETES_NODE = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_UNSAFE = re.compile(r"[^ -~]|[\"'`$\\!;|&<>]")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Order:
    """Action on a node, and its reason."""

    request: str
    number: int
    url: str
    node: str
    component: str
    part: str | None
    summary: str
    analyzer: str | None
    reason: str
    at: datetime


def order_as_json(order: Order) -> dict[str, Any]:
    """`kubernetes` (null where the name is none that Kubernetes allows), `slurm` and `commands` of an order."""
    check_node(order.node)
    kubernetes = _external_remediation_request(order) if _KUBERNETES_NODE.fullmatch(order.node) else None
    return {
        "kubernetes": kubernetes,
        "slurm": {"node": order.node, "state": "DRAIN", "reason": reason_line(order)},
        "commands": commands(order, kubernetes),
    }


def reason_line(order: Order) -> str:
    """The reason as a scheduler shows it: one line of plain characters that no shell reads, with the incident first."""
    plain = _SPACE.sub(" ", _UNSAFE.sub(" ", f"{order.component}: {order.reason}")).strip()
    return f"Dossier #{order.number} {plain}"[:LONGEST_REASON]


def name_of(order: Order) -> str:
    """The name of the Kubernetes object: the same request has the same name."""
    return f"dossier-{order.number}-{order.request[:8]}"


def _external_remediation_request(order: Order) -> dict[str, Any]:
    kind, _, serial = (order.part or "").partition("/")
    labels = {f"{NAMESPACE}.nvidia.com/recommended-action": "external-remediation"}
    if len(order.node) <= 63:
        labels[f"{NAMESPACE}.nvidia.com/node"] = order.node
    impacted = [{"entityType": kind.upper(), "entityValue": serial}] if order.part else []
    return {
        "apiVersion": API_VERSION,
        "kind": "ExternalRemediationRequest",
        "metadata": {"name": name_of(order), "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "healthEvent": {
                "version": 1,
                "id": order.request,
                "agent": "dossier",
                "checkName": order.analyzer or "incident",
                "componentClass": kind.upper() or "NODE",
                "nodeName": order.node,
                "isFatal": True,
                "isHealthy": False,
                "recommendedAction": "CUSTOM",
                "customRecommendedAction": "external-remediation",
                "message": f"{order.summary} {order.reason}".strip(),
                "entitiesImpacted": impacted,
                "generatedTimestamp": rfc3339(order.at),
                "metadata": _metadata(order, serial),
            }
        },
    }


def _metadata(order: Order, serial: str) -> Mapping[str, str]:
    known = {"incident": str(order.number), "url": order.url, "component": order.component}
    return {**known, "serialNumber": serial} if serial else known


def commands(order: Order, kubernetes: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Commands to copy: `cluster` (kubernetes or slurm), `does` and `command`."""
    found = []
    if kubernetes is not None:
        manifest = json.dumps(kubernetes, separators=(",", ":"))
        taint = f"{TAINT}={name_of(order)}:NoSchedule"
        found = [
            ("kubernetes", "Keep new pods off the node", _shell("kubectl", "cordon", order.node)),
            (
                "kubernetes",
                "Mark the node",
                _shell("kubectl", "taint", "nodes", order.node, taint, "--overwrite"),
            ),
            (
                "kubernetes",
                "Move its pods",
                _shell("kubectl", "drain", order.node, "--ignore-daemonsets", "--delete-emptydir-data"),
            ),
            (
                "kubernetes",
                "Create the request for NVSentinel",
                f"{_shell('printf', '%s', manifest)} | {_shell('kubectl', 'apply', '-f', '-')}",
            ),
            (
                "kubernetes",
                "After the repair: take the mark away",
                _shell("kubectl", "taint", "nodes", order.node, f"{TAINT}-"),
            ),
            ("kubernetes", "After the repair: let pods run again", _shell("kubectl", "uncordon", order.node)),
        ]
    drain = ("scontrol", "update", f"nodename={order.node}", "state=drain", f"reason={reason_line(order)}")
    found.append(("slurm", "Let jobs finish and start no new ones", _shell(*drain)))
    resume = ("scontrol", "update", f"nodename={order.node}", "state=resume")
    found.append(("slurm", "After the repair", _shell(*resume)))
    return [{"cluster": cluster, "does": does, "command": command} for cluster, does, command in found]


def _shell(*arguments: str) -> str:
    return shlex.join(arguments)
