"""GPUs by node and number: the component and slot of an alert, and Xid errors out of kernel logs and DCGM. Pure.

Xid numbers: https://docs.nvidia.com/deploy/xid-errors/. A line of the kernel log reads
`NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.`
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ingest.integrations.normalized import Alert, Notes, Severity, key_of
from ingest.telemetry.kinds.declare import is_component

if TYPE_CHECKING:
    from ingest.telemetry.decode.columns import Rows

QUIET = timedelta(minutes=15)
"""An Xid is reported once and never taken back: over when not repeated for this long."""
XID_LINE = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d{1,4})(?:, *(.*))?")
MEANINGS = {
    8: "GPU stopped processing", 13: "graphics engine exception", 31: "GPU memory page fault",
    32: "invalid or corrupted push buffer", 43: "GPU stopped processing", 45: "preemptive cleanup after earlier errors",
    48: "double bit ECC error", 61: "internal micro-controller breakpoint", 62: "internal micro-controller halt",
    63: "ECC page retirement or row remapping", 64: "ECC page retirement or row remapping failed",
    68: "video processor exception", 69: "graphics engine class error", 74: "NVLink error",
    79: "GPU has fallen off the bus", 92: "high rate of single bit ECC errors", 94: "contained ECC error",
    95: "uncontained ECC error", 119: "GSP RPC timeout", 120: "GSP error", 121: "C2C link error",
    140: "unrecovered ECC error", 143: "GPU initialization error", 149: "NVLink error",
}  # fmt: skip
OF_PROGRAMS = frozenset({13, 31, 43, 45, 68, 69})
"""Xids that a program may cause on a good GPU; all others are of hardware or driver."""
CRITICAL = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 121, 140, 143, 149})
"""Xids after which the GPU is reset, or replaced."""
_SPACE = re.compile(r"[\s/]+")


def slot_of(node: str, number: str) -> str:
    """The slot of a GPU without its kind: node, and number or PCI address."""
    return f"{_SPACE.sub('-', node)}:{_SPACE.sub('-', number)}"


def component_of_slot(node: str, number: str) -> str | None:
    """The GPU of a slot where nothing says which part it holds."""
    name = "gpu/" + "-".join(_SPACE.sub("-", part) for part in (node, number) if part)
    return name if is_component(name) else None


def xid_alert(node: str, number: str, xid: int, text: str, at: datetime | None, now: datetime) -> Alert:
    """An Xid of the GPU with that number or PCI address; one alert for each GPU and Xid."""
    notes = Notes()
    meaning = text.strip() or MEANINGS.get(xid, "")
    severity: Severity = "critical" if xid in CRITICAL else "warning" if xid in OF_PROGRAMS else "error"
    title = f"Xid {xid} on GPU {number} of {node}" + (f": {meaning}" if meaning else "")
    return Alert(
        key=key_of(f"xid/{node}/{number}/{xid}"),
        status="firing",
        title=notes.line("title", title),
        severity=severity,
        group=f"Xid {xid}",
        component=component_of_slot(node, number),
        labels=notes.labels({"node": node, "slot": slot_of(node, number), "xid": str(xid)}),
        starts_at=at,
        expires_at=now + QUIET,
        notes=tuple(notes.texts),
    )


def xid_in(text: str) -> tuple[str, int, str] | None:
    """PCI address, Xid and message of a line of the kernel log; None for another line."""
    found = XID_LINE.search(text)
    if found is None:
        return None
    message = re.sub(r"^(?:pid=[^,]*, *)?(?:name=[^,]*, *)?", "", found[3] or "")
    return found[1], int(found[2]), message


DCGM_XID = "DCGM_FI_DEV_XID_ERRORS"
"""The last Xid of a GPU, 0 for none, as dcgm-exporter names it (https://github.com/NVIDIA/dcgm-exporter)."""
NODES = ("Hostname", "hostname", "node", "kubernetes_node", "exported_node", "instance")
"""Labels of a sample of dcgm-exporter that name the node, the best first."""


def node_and_gpu(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Node and number of the GPU of a sample or alert of dcgm-exporter; None where the labels are of something else."""
    number = labels.get("gpu", "").strip()
    if not number.isdigit() or not (
        "UUID" in labels or "DCGM_FI_DRIVER_VERSION" in labels or "Hostname" in labels
    ):
        return None
    node = next(filter(None, (labels.get(name, "").strip() for name in NODES)), "")
    return (re.sub(r":\d+$", "", node), number) if node else None


def component_in(labels: Mapping[str, str]) -> str | None:
    """The GPU of labels of dcgm-exporter; None where they are of something else, or name a component themselves."""
    where = None if "component" in labels else node_and_gpu(labels)
    return None if where is None else component_of_slot(*where)


def slot_in(labels: Mapping[str, str]) -> str:
    """The slot that labels name, as `slot` or as dcgm-exporter does; empty for none."""
    if stated := labels.get("slot", ""):
        return stated
    where = node_and_gpu(labels)
    return "" if where is None else slot_of(*where)


def dcgm_alerts(rows: Rows, now: datetime) -> tuple[Alert, ...]:
    """The alerts of rows of `metric`: GPUs whose last Xid is not 0. One alert for each GPU and Xid."""
    from ingest.telemetry.decode.columns import Names  # loads numpy, which other readers of alerts do without

    names, labels = rows.columns["name"], rows.columns["labels"]
    values: Any = rows.columns["value"]
    if not isinstance(names, Names) or not isinstance(labels, Names) or DCGM_XID not in names.names:
        return ()
    mine = ((names.codes == names.names.index(DCGM_XID)) & (values >= 1) & (values < 10_000)).nonzero()[0]
    found: dict[str, Alert] = {}
    for row in mine.tolist():
        stated = json.loads(labels.names[int(labels.codes[row])])
        if (where := node_and_gpu(stated)) is not None:
            one = xid_alert(*where, int(values[row]), "", None, now)
            found[one.key] = structs.replace(one, labels={**one.labels, **_known(stated)})
    return tuple(found.values())


def _known(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: labels[name] for name in ("UUID", "modelName", "pci_bus_id") if labels.get(name)}
