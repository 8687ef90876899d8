"""Examples in the documentation, made from the declarations so that they agree with the API."""

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
    "src": "host/h3",
    "dst": "host/h17",
    "node": "node/gpu-17",
    "device": "tor/dc1-t12",
    "observer": "process/api-3",
    "subject": "process/store-1",
    "context": "put",
    "cause": "soft",
    "benchmark": "gemm-flops",
    "metric": "fp16",
    "kind": "gpu_ecc",
    "trace": "4bf92f3577b34da6a3ce929d0e0e4736",
    "service": "cart",
    "instance": "cart-7d9",
    "operation": "GET /cart",
    "lost": 0,
    "error": False,
    "end": "2026-11-21T10:20:00Z",
    "job": "pretrain-70b",
    "nodes": ["node/gpu-17", "node/gpu-18"],
    "endpoint": "endpoint/pretrain-70b-3-r0",
    "host": "host/h17",
    "nic": "nic/h17-0",
    "rail": 0,
    "tx_bytes": 25e9,
    "element": "vswitch/h17",
    "match": "vport/pretrain-70b-4-r0",
    "layer": "vswitch",
    "communicator": "dp0",
    "seq": 4711,
    "op": "all_reduce",
    "rank": 17,
    "worker": "worker/17",
    "role": "pp0",
    "function": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    "beta": 0.21,
    "mu": 0.84,
    "sigma": 0.05,
    "change": "CHG-1042",
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
    "id": "00f067aa0ba902b7",
    "numbers": [268.0, 301.5],
    "measures": {"age_days": 412.0},
}


def example(kind: Any) -> str:
    """One row of a telemetry kind as a line of NDJSON, without its optional fields."""
    row = {field.name: _example(field) for field in kind.fields if not field.optional}
    return json.dumps(row)


def _example(field: Any) -> Any:
    return field.choices[0] if field.choices else _KNOWN.get(field.name, _OF_TYPE[field.type])


SCHEDULE = """{"slug": "storage", "name": "Storage on call", "time_zone": "Europe/Berlin", "layers": [
  {"name": "days", "people": ["alice", "bob"], "start": "2026-01-05T09:00", "turn": "1w"},
  {"name": "nights", "people": ["charlie"], "start": "2026-01-05T18:00", "turn": "1d",
   "times": [{"days": ["mon", "tue", "wed", "thu", "fri"], "from": "18:00", "to": "09:00"}]}]}"""

WEBHOOK_REQUEST = """POST /dossier HTTP/1.1
Content-Type: application/json
Dossier-Webhook: status-page
Dossier-Event: incident.acknowledged
Dossier-Id: incident/0b9c2b1e-6f6c-4f5e-9d0a-3d6f2f3a9b11@4
Dossier-Signature: t=1795257600,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd

{"id": "incident/0b9c2b1e-6f6c-4f5e-9d0a-3d6f2f3a9b11@4", "type": "incident.acknowledged",
 "actor": "user:alice", "occurred_at": "2026-11-21T10:00:00Z", "position": "0001…",
 "incident": {"number": 17, "state": "acknowledged", "team": "storage", …}, "event": {}}"""

WEBHOOK_SNIPPET = '''import hashlib
import hmac
import time


def genuine(header: str, body: bytes, secret: str, tolerance: int = 300) -> bool:
    """Whether a delivery comes from Dossier and is not an old one that somebody sends again."""
    parts = [part.partition("=") for part in header.split(",")]
    sent = next((value for name, _, value in parts if name == "t"), "")
    if not sent.isdigit() or abs(time.time() - int(sent)) > tolerance:
        return False
    expected = hmac.new(secret.encode(), f"{sent}.".encode() + body, hashlib.sha256).hexdigest()
    return any(hmac.compare_digest(expected, value) for name, _, value in parts if name == "v1")
'''
