"""What a page costs whoever opens it: the weight of its scripts, and whether anything moves once it is there."""

from __future__ import annotations

import gzip

from playwright.sync_api import Page, expect

from tests.browser import content
from tests.browser.conftest import Console
from tests.browser.test_grid import feed

HEAVIEST = 60_000
"""Bytes of scripts, gzipped as `manage.py up` sends them, without the charts, which are loaded when one is seen."""
MOST_SHIFT = 0.02
"""A fifth of what Web Vitals calls good."""
SCRIPTS = """() => performance.getEntriesByType('resource').map((one) => one.name)
  .filter((name) => name.endsWith('.js') && !name.includes('vega'))"""
SHIFTED = """() => new Promise((answer) => {
  let moved = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((one) => { moved += one.value; }))
    .observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => answer(moved), 500);
})"""


def is_light_and_still(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    expect(page.locator(".live")).to_have_text("Live")
    scripts = [page.request.get(one).body() for one in page.evaluate(SCRIPTS)]
    assert 10_000 < sum(len(gzip.compress(one)) for one in scripts) <= HEAVIEST
    assert page.evaluate(SHIFTED) <= MOST_SHIFT


def test_the_inbox_is_light_and_still(console: Console) -> None:
    content.open_ticket("Was there before")
    is_light_and_still(console.open("/"))


def test_a_ticket_with_evidence_is_light_and_still(console: Console) -> None:
    is_light_and_still(console.open(f"/incidents/{content.report_finding()}"))


def test_a_ticket_of_a_person_is_light_and_still(console: Console) -> None:
    is_light_and_still(
        console.open(f"/incidents/{content.open_ticket('Racks are hot', component='rack/r1')}")
    )


def test_the_grid_is_light_and_still(console: Console) -> None:
    page = console.open(f"/grid?steps=3&region={feed(console.address)}")
    expect(page.locator("#grid[data-ready]")).to_be_visible()
    is_light_and_still(page)
