"""Cost of opening a page: the weight of its scripts, and whether anything moves once it is there."""

from __future__ import annotations

import gzip

from playwright.sync_api import Page, expect

from incidents import queries
from incidents.commands import attach_evidence
from incidents.domain.remediation.state import AnswerKind
from incidents.remediation.commands import answer, hand_to_cluster
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


TALLEST, TALLEST_ON_A_PHONE = 1_800, 3_500
TARGET = 44
"""Pixels of what a thumb hits."""
BOTTOMS = """() => Object.fromEntries(
  [...document.querySelectorAll('.strip, .brief section, .act-bar')].map((one) => [
    one.querySelector('h2')?.textContent.trim().split(' ')[0] ?? one.className.split(' ')[0],
    one.getBoundingClientRect().bottom,
  ]),
)"""


def test_the_first_screen_of_a_ticket_answers_what_decides(console: Console) -> None:
    page = console.open("/")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{console.address}/incidents/{content.report_finding()}")
    expect(page.locator(".hurt .slot")).to_contain_text("Unknown", timeout=30_000)
    bottoms = page.evaluate(BOTTOMS)
    assert set(bottoms) == {"strip", "Cause", "Affected", "Response", "Next", "act-bar"}
    assert max(bottoms.values()) <= 900
    assert page.evaluate("document.documentElement.scrollHeight") <= TALLEST
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollHeight") <= TALLEST_ON_A_PHONE
    bottoms = page.evaluate(BOTTOMS)
    assert max(bottoms[name] for name in ("strip", "Cause", "Affected", "Response")) <= 844
    bar = page.locator(".act-bar").bounding_box()
    assert bar
    assert bottoms["Next"] <= bar["y"]
    heights = page.locator(".act-bar button:visible, .act-bar summary:visible").evaluate_all(
        "all => all.filter((one) => !one.closest('.panel')).map((one) => one.getBoundingClientRect().height)"
    )
    assert min(heights) >= TARGET
    page.mouse.wheel(0, 2_000)
    expect(page.get_by_role("button", name="Acknowledge")).to_be_in_viewport()


def test_a_note_of_missing_permissions_leaves_the_bar_of_a_phone_low(console: Console) -> None:
    page = console.open("/")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{console.address}/incidents/{content.open_ticket('Racks are dark')}")
    page.locator(".act-bar .actions").evaluate(
        """(bar) => {
          const note = document.createElement("p");
          note.className = "refused muted small";
          note.textContent = "Some actions are not available: acknowledge requires the role responder. ".repeat(2);
          bar.append(note);
        }"""
    )
    bar = page.locator(".act-bar").bounding_box()
    assert bar
    assert bar["height"] <= 3 * TARGET


def test_a_ticket_of_three_analyzers_is_no_longer_than_others(console: Console) -> None:
    number = content.report_finding()
    cause = str(content.verdict()["suspects"][0]["component"])
    content.said_by(number, {"voting": cause, "netbouncer": cause}, pieces=9)
    page = console.open("/")
    for width, height, most in ((1440, 900, TALLEST), (390, 844, TALLEST_ON_A_PHONE)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{console.address}/incidents/{number}")
        expect(page.locator(".candidates .own .standing")).to_contain_text("all 3 analyzers")
        expect(page.locator("[data-later]")).to_have_count(0)
        expect(page.locator("[data-chart] .chart svg").first).to_be_visible(timeout=30_000)
        assert page.evaluate("document.documentElement.scrollHeight") <= most
    page.locator("summary", has_text="Evidence of voting").press("Enter")
    of_voting = page.locator("details.fold", has=page.get_by_role("heading", name="Evidence of voting"))
    expect(of_voting.locator("details").first).to_be_visible()


def test_a_ticket_with_a_storm_of_symptoms_is_no_longer_than_others(console: Console) -> None:
    number = content.report_finding()
    cause = str(queries.get(str(number)).incident.component)
    content.said_by(number, {"voting": cause, "netbouncer": content.OTHER, "pingmesh": None}, pieces=9)
    content.storm_on(number)
    page = console.open("/")
    for width, height, most in ((1440, 900, TALLEST), (390, 844, TALLEST_ON_A_PHONE)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{console.address}/incidents/{number}")
        expect(page.locator("#more-alerts > summary")).to_contain_text("40 of 40 firing")
        expect(page.locator("[data-later]")).to_have_count(0)
        expect(page.locator("[data-chart] .chart svg").first).to_be_visible(timeout=30_000)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollHeight") <= most


MOST_OF_A_LINE = 60
"""Pixels of a folded group of evidence."""


def test_a_repair_and_earlier_evidence_make_a_ticket_no_longer_than_others(console: Console) -> None:
    number = content.report_finding()
    cause = str(queries.get(str(number)).incident.component)
    content.said_by(number, {"voting": cause, "netbouncer": cause}, pieces=9)
    id_ = content.ticket_id(number)
    for shelf in range(7):  # the newest one is shown
        rows = [[f"disk/d{row}", f"{row} %"] for row in range(40)]
        piece = {"kind": "table", "title": f"Shelf {shelf}", "columns": ["disk", "slow"], "rows": rows}
        attach_evidence(id_, [piece], content.ALICE)
    hand_to_cluster(
        id_, "it is slow", content.ALICE, component=cause, node="gpu-17", target="", proof_required=True
    )
    handed_over = queries.get(str(number)).incident.remediation
    assert handed_over is not None
    steps: tuple[AnswerKind, ...] = ("drained", "replaced", "returned")
    for step in steps:
        answer(id_, handed_over.request, step, "alice", content.ALICE, note="by hand")
    page = console.open("/")
    for width, height, most in ((1440, 900, TALLEST), (390, 844, TALLEST_ON_A_PHONE)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{console.address}/incidents/{number}")
        expect(page.locator("[data-repair] [aria-current=step]")).to_contain_text("Proved")
        expect(page.locator("#fold-earlier > summary")).to_contain_text("6")
        expect(page.locator("[data-later]")).to_have_count(0)
        expect(page.locator("[data-chart] .chart svg").first).to_be_visible(timeout=30_000)
        folded = page.evaluate("document.documentElement.scrollHeight")
        assert folded <= most
        page.locator("#fold-earlier > summary").click()
        expect(page.locator("#fold-earlier details.older > summary").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollHeight") <= folded + 6 * MOST_OF_A_LINE
        page.locator("#fold-earlier > summary").click()


def test_what_is_unfolded_on_one_ticket_is_unfolded_on_the_next(console: Console) -> None:
    page = console.open(f"/incidents/{content.open_ticket('Fans of rack 1 are loud')}")
    page.get_by_role("heading", name="Facts").click()
    expect(page.get_by_text("Dedup key")).to_be_visible()
    page.wait_for_function(
        "document.cookie.includes('facts')"
    )  # kept once the browser tells of the unfolding
    page.goto(f"{console.address}/incidents/{content.open_ticket('Fans of rack 2 are loud')}")
    expect(page.get_by_text("Dedup key")).to_be_visible()
    page.get_by_role("heading", name="Facts").click()
    expect(page.get_by_text("Dedup key")).to_be_hidden()
    page.wait_for_function("!document.cookie.includes('facts')")
