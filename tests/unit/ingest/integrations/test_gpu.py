"""GPUs by node and number: labels of dcgm-exporter, lines of the kernel log, Xids in samples."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from ingest.integrations import gpu
from ingest.integrations.normalized import component_of
from ingest.telemetry.decode.builder import Assembly
from ingest.telemetry.decode.columns import Bounds, Rows
from ingest.telemetry.kinds import KINDS

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DCGM = {"gpu": "3", "UUID": "GPU-1a", "Hostname": "gpu-17", "modelName": "H100", "instance": "10.0.0.7:9400"}


def samples(*told: tuple[str, dict[str, str], float]) -> Rows:
    names, labels, values = zip(*told, strict=True)
    assembly = Assembly(KINDS["metric"], "default")
    columns = {
        "time": [NOW] * len(told),
        "name": names,
        "labels": labels,
        "value": values,
        "region": [None] * len(told),
    }
    assembly.add(columns, np.arange(1, len(told) + 1))
    return assembly.rows(Bounds())


@pytest.mark.parametrize(
    ("labels", "component", "slot"),
    [
        (DCGM, "gpu/gpu-17-3", "gpu-17:3"),
        ({**DCGM, "Hostname": ""}, "gpu/10.0.0.7-3", "10.0.0.7:3"),
        ({"gpu": "3", "node": "n1"}, None, ""),
        ({"gpu": "gpu-17-3", "UUID": "x", "node": "n1"}, None, ""),
        ({**DCGM, "component": "gpu/165"}, None, "gpu-17:3"),
        ({"slot": "n1:5"}, None, "n1:5"),
    ],
)
def test_labels_of_dcgm_name_gpu_and_slot(labels: dict[str, str], component: str | None, slot: str) -> None:
    assert (gpu.component_in(labels), gpu.slot_in(labels)) == (component, slot)


def test_an_xid_in_a_sample_is_an_alert_of_its_gpu() -> None:
    rows = samples(
        (gpu.DCGM_XID, DCGM, 79.0),
        (gpu.DCGM_XID, {**DCGM, "gpu": "4"}, 0.0),
        ("DCGM_FI_DEV_GPU_TEMP", DCGM, 60.0),
    )
    (alert,) = gpu.dcgm_alerts(rows, NOW)
    assert (alert.component, alert.severity, alert.labels["slot"]) == ("gpu/gpu-17-3", "critical", "gpu-17:3")
    assert alert.title == "Xid 79 on GPU 3 of gpu-17: GPU has fallen off the bus"
    assert alert.expires_at == NOW + gpu.QUIET


def test_an_xid_that_repeats_is_one_alert_and_another_one_a_second() -> None:
    rows = samples((gpu.DCGM_XID, DCGM, 31.0), (gpu.DCGM_XID, DCGM, 31.0), (gpu.DCGM_XID, DCGM, 63.0))
    assert [(alert.group, alert.severity) for alert in gpu.dcgm_alerts(rows, NOW)] == [
        ("Xid 31", "warning"), ("Xid 63", "error")
    ]  # fmt: skip


def test_a_condition_of_a_node_is_an_alert_of_the_node() -> None:
    assert (
        component_of({"alertname": "NodeCondition", "condition": "KernelDeadlock", "node": "gpu-17"})
        == "node/gpu-17"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=a, GPU has fallen off the bus.",
            ("0000:3b:00", 79, "GPU has fallen off the bus.")),
        ("[ 17.1] NVRM: Xid (PCI:0000:3b:00): 48, DBE", ("0000:3b:00", 48, "DBE")),
        ("NVRM: Xid (0000:3b:00): 13", ("0000:3b:00", 13, "")),
        ("NVRM: loading", None),
    ],
)  # fmt: skip
def test_a_line_of_the_kernel_log_is_taken_apart(text: str, found: tuple[str, int, str] | None) -> None:
    assert gpu.xid_in(text) == found
