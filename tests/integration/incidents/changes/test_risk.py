"""A planned change over HTTP: its risk with interval, rule and similar changes, or why there is none."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from analyzers.simulators.changes.risk import EPOCH, Rates, history
from ingest.api import keys

pytestmark = pytest.mark.usefixtures("log_database")

RATES = Rates(changes=400, usual=0.02, wide=0.95, evening=0.02, noise=0.0)
RISKY = {
    "change": "CHG-9",
    "kind": "config",
    "team": "network",
    "targets": ["service/network-1"],
    "settings": {"network.acl": "4"},
    "measures": {"rollout": 1.0, "reviewers": 1},
}


def ask(key: str, **planned: Any) -> tuple[int, dict[str, Any]]:
    answer = Client().post(
        "/api/v1/changes/risk",
        json.dumps(planned),
        content_type="application/json",
        headers={"authorization": f"Bearer {key}"},
    )
    return answer.status_code, answer.json()


def test_a_planned_change_has_a_risk_with_its_rule() -> None:
    key = keys.create("test", ["telemetry", "incidents:read"])
    assert ask(key, **RISKY) == (
        200,
        dict.fromkeys(("probability", "low", "high", "usual"))
        | {
            "past": 0,
            "bad": 0,
            "reason": "No probability: 0 changes with a known outcome, of which 0 were bad; 60 and 8 are needed.",
            "path": [],
            "reasons": [],
            "similar": [],
        },
    )

    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    shift = today - timedelta(days=184) - EPOCH
    rows, _ = history(1, True, RATES)
    for kind, made in rows.items():
        moved = [{**row, "time": (datetime.fromisoformat(row["time"]) + shift).isoformat()} for row in made]
        answer = Client().post(
            f"/api/v1/telemetry/{kind}",
            json.dumps(moved),
            content_type="application/json",
            headers={"authorization": f"Bearer {key}"},
        )
        assert answer.status_code == 202, answer.content
    status, risky = ask(key, **RISKY)
    assert status == 200
    assert risky["low"] < risky["probability"] < risky["high"]
    assert risky["probability"] > 5 * risky["usual"]
    assert {"sets network.*"} <= {step["condition"] for step in risky["path"]}
    assert risky["similar"][0]["outcome"] in ("incident", "rolled_back")
    _, safe = ask(key, **{**RISKY, "settings": {"cache.ttl": "3"}})
    assert safe["low"] < safe["usual"] < safe["high"]
    assert safe["probability"] < min(risky["low"], risky["probability"] / 2)
    before = (datetime.fromisoformat(rows["change"][60]["time"]) + shift).isoformat()
    assert ask(key, **RISKY, time=before)[1]["probability"] is None

    for wrong, field in (
        ({"targets": ["cart"]}, "targets"),
        ({"measures": {"lines": "many"}}, "measures"),
        ({"size": 3}, "size"),
        ({"region": "mars"}, "region"),
        ({"kind": ""}, "kind"),
        ({"time": "0001-01-02T00:00:00Z"}, "time"),
        ({"measures": {"lines": "inf"}}, "measures"),
    ):
        status, answer_ = ask(key, **{**RISKY, **wrong})
        assert (status, field in json.dumps(answer_)) == (400, True), answer_
    assert ask("wrong", **RISKY)[0] == 401
