"""A node is handed to the cluster, drained, replaced, returned and proved repaired, by keyboard in a browser."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

from playwright.sync_api import Page, expect

from incidents import queries
from incidents.remediation.sweep import judge_returned
from ingest.api import keys
from ingest.queries import now_utc
from tests.browser import content
from tests.browser.conftest import Console

SERIAL, NEW, NODE = "1652821001234", "1652821009999", "gpu-17"


def attempts(address: str, rows: list[dict[str, Any]]) -> None:
    key = keys.create(f"jobs {uuid4()}", ["telemetry"])
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = Request(f"{address}/api/v1/telemetry/job_attempt", json.dumps(rows).encode(), headers)
    with urlopen(request, timeout=20) as response:
        assert response.status == 202


def job(name: str, node: str, at: datetime, outcome: str) -> dict[str, Any]:
    start = (at - timedelta(minutes=1)).isoformat()
    return {"job": name, "nodes": [node], "start": start, "end": at.isoformat(), "outcome": outcome}


def chosen(page: Page, words: str) -> None:
    """An action of the incident, from the palette."""
    page.keyboard.press("Control+k")
    page.keyboard.type(words)
    expect(page.get_by_role("option", name=words, exact=True)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")


def recorded(page: Page, step: str, part: str = "") -> None:
    """The cluster's answer, from the keyboard alone; the step that comes next is chosen already."""
    chosen(page, "Record what the cluster did")
    expect(page.get_by_label("Step", exact=True)).to_be_focused()
    expect(page.get_by_label("Step", exact=True).locator("option:checked")).to_have_text(step)
    if part:
        page.keyboard.press("Tab")
        page.keyboard.type(part)
    page.locator("[data-repair]").get_by_label("Note").focus()
    page.keyboard.press("Enter")


def test_a_node_goes_from_the_hand_over_to_a_proved_repair_by_keyboard(console: Console) -> None:
    number = content.open_ticket("GPU fell off the bus", component=f"gpu/{SERIAL}")
    now = now_utc()
    minutes = [now - timedelta(hours=20) + timedelta(minutes=i) for i in range(360)]
    own = [job(f"a{i}", f"node/{NODE}", minutes[i * 9], ("completed", "failed")[i % 2]) for i in range(40)]
    fleet = [job(f"b{i}", f"node/gpu-{i % 9}", minutes[i], "completed") for i in range(300)]
    attempts(console.address, [*own, *fleet])
    page = console.open(f"/incidents/{number}")
    chosen(page, "Hand to cluster")
    expect(page.get_by_label("Component", exact=True)).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.type(NODE)
    page.keyboard.press("Tab")
    page.keyboard.type("Xid 79 after a reset")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    repair, present = page.locator("[data-repair]"), page.locator("[data-repair] [aria-current=step]")
    expect(repair.get_by_role("heading")).to_have_text(f"Repair of {NODE}")
    expect(present).to_contain_text("Drained waiting")
    expect(page.get_by_role("region", name="Timeline")).to_contain_text(f"alice handed {NODE} to the cluster")
    recorded(page, "Drained")
    expect(present).to_contain_text("Replaced waiting")
    recorded(page, "Part replaced", NEW)
    expect(repair).to_contain_text(f"gpu/{NEW} is in.")
    recorded(page, "Returned to service")
    expect(present).to_contain_text("Proved waiting")

    after = now_utc()
    passed = [job(f"c{i}", f"node/{NODE}", after + timedelta(seconds=i), "completed") for i in range(120)]
    attempts(console.address, passed)
    assert judge_returned(after + timedelta(minutes=5)) == 1
    expect(repair.locator("li.done").last).to_contain_text("Proved")
    assert judge_returned(after + timedelta(minutes=5)) == 1
    expect(page.locator(".verdict .pill:not([data-failure])")).to_have_text("Resolved")
    expect(page.get_by_role("region", name="Timeline")).to_contain_text(f"gpu/{NEW} has proof of repair")
    expect(page.locator("[data-part=verdict]")).to_contain_text(
        re.compile(r"Cause not confirmed by a person; the repair of \S+ was proved")
    )
    assert queries.get(str(number)).incident.resolved_by == "system:incidents"
