"""Alerts, dashboard and autoscaler ask for metrics that `/metrics` has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from deploy import processes
from deploy.embedded import Home
from ingest.db import database
from tests.architecture.test_manifests import of_kind
from tests.places import ROOT

NAME = re.compile(r"\bdossier_[a-z_]+\b")
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}


def expressions() -> list[str]:
    (rules,) = of_kind("PrometheusRule")
    (scaled,) = of_kind("ScaledObject")
    (board,) = [one for one in of_kind("ConfigMap") if one["metadata"]["name"] == "dossier-dashboard"]
    panels: list[Any] = json.loads(board["data"]["dossier.json"])["panels"]
    return [
        *(rule["expr"] for group in rules["spec"]["groups"] for rule in group["rules"]),
        *(target["expr"] for panel in panels for target in panel["targets"]),
        *(trigger["metadata"]["query"] for trigger in scaled["spec"]["triggers"]),
    ]


@pytest.mark.django_db
def test_they_ask_for_what_is_there(
    client: Client, broker: str, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del broker
    settings.HOME = Home(tmp_path)
    processes.write(tmp_path, [processes.Known("web-1", "running", 7, 0, "")])
    monkeypatch.setattr(database, "skew", lambda: 0.0)
    monkeypatch.setattr("deploy.observability.metrics.clock_skew", lambda: 0.0)
    lines = client.get("/metrics").content.decode().splitlines()
    types = [line.split()[2:4] for line in lines if line.startswith("# TYPE")]
    there = {name.removesuffix("_total") + end for name, kind in types for end in SUFFIXES.get(kind, ())}
    asked = {name for one in expressions() for name in NAME.findall(one)}
    assert len(asked) > 15
    assert asked - there == set()


def test_every_alert_is_on_the_page_that_says_what_to_do() -> None:
    (rules,) = of_kind("PrometheusRule")
    page = (ROOT / "frontend" / "docs" / "operate" / "monitoring.md").read_text()
    alerts = {rule["alert"] for group in rules["spec"]["groups"] for rule in group["rules"]}
    assert {alert for alert in alerts if f"`{alert}`" not in page} == set()
