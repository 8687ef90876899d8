"""The grid in a real browser: drawn, walked over by keys, looked into, played; and what axe says of it with cells."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from urllib.request import Request, urlopen
from uuid import uuid4

from playwright.sync_api import expect

from ingest.api import keys
from tests.browser.conftest import Console
from tests.browser.looking import sticks_out, violations

END = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=2)


def feed(address: str) -> str:
    """Six ToRs in three clusters against four storage clusters, one of which fails in the last hour; in which region.

    It is new each time, so that no other test's telemetry adds to it.
    """
    region = f"region-{uuid4().hex[:8]}"
    rows: list[dict[str, object]] = [
        {
            "time": (END - timedelta(minutes=30 + 60 * hour)).isoformat(),
            "components": [f"compute_cluster/c{c}", f"tor/c{c}-t{t}", f"storage_cluster/s{s}"],
            "attempts": 100,
            "failures": 30 if s == 2 and hour == 0 else 0,
            "region": region,
        }
        for hour in range(3)
        for c in range(3)
        for t in range(2)
        for s in range(4)
    ]
    send(address, rows)
    return region


def send(address: str, rows: list[dict[str, object]]) -> None:
    key = keys.create(f"feeder {uuid4()}", ["telemetry"])
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = Request(f"{address}/api/v1/telemetry/path_outcome", json.dumps(rows).encode(), headers)
    with urlopen(request, timeout=10) as answer:
        assert answer.status == 202


def test_the_grid_is_walked_looked_into_and_played(console: Console) -> None:
    region = feed(console.address)
    page = console.open(f"/grid?steps=3&region={region}")
    grid = page.locator("#grid[data-ready]")
    expect(grid).to_be_visible()
    time = (END + timedelta(seconds=90)).isoformat()
    parts = ["compute_cluster/c0", "tor/c0-t0", "storage_cluster/s1"]
    late = {"time": time, "components": parts, "attempts": 7, "failures": 7, "region": region}
    send(console.address, [late])
    page.evaluate(
        "const asked = {}; document.dispatchEvent(new CustomEvent('pageupdate', { detail: asked })); asked.by"
    )
    expect(page.locator("[data-worst]")).to_contain_text("207")  # telemetry that came since, without a reload
    assert "end=" not in page.url
    grid.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    says = "compute_cluster/c1, storage_cluster/s2: 30 %, 60 of 200 failed"
    expect(page.get_by_role("gridcell")).to_have_attribute("aria-label", says)
    expect(page.locator("[data-inspect]")).to_contain_text("60 of 200 failed")
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, "color-contrast") == []
    page.keyboard.press(",")
    expect(page.locator("[data-worst]")).to_contain_text("no failures")
    assert "at=" in page.url
    grid.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("tor × storage_cluster")
    expect(page.locator("#grid[data-ready]")).to_have_attribute("aria-rowcount", "2")
    expect(grid).to_be_focused()
    page.get_by_role("button", name="Play").click()
    expect(page.locator("#step")).to_have_value("2")
    page.set_viewport_size({"width": 360, "height": 800})
    assert not sticks_out(page)
    page.get_by_role("link", name="All", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("compute_cluster × storage_cluster")
