"""Parts of the page of an incident fetched beside its first screen: by themselves, on paper, with a word when lost."""

from __future__ import annotations

from datetime import timedelta

from playwright.sync_api import expect

from incidents import commands, queries
from tests.browser import content
from tests.browser.conftest import Console
from tests.browser.looking import violations
from tests.integration.analyzers.runs.cases import Door

FOLDED = """() => [...document.querySelectorAll("details:not(.act, .chart-data) > :not(summary)")]
  .filter((one) => !one.closest(".screen-only, form, dialog, .bar, .chart-data")
    && one.textContent.trim() && !one.checkVisibility())
  .map((one) => one.parentElement.id || one.parentElement.className)"""


def test_onset_and_records_come_without_waiting_for_a_fold_to_open(console: Console) -> None:
    page = console.open(f"/incidents/{content.report_finding()}")
    expect(page.locator(".candidates .record")).to_contain_text("deepview")
    expect(page.locator("#fold-changes summary")).to_contain_text("none")
    page.locator("#fold-changes summary").press("Enter")
    expect(page.locator("#fold-changes")).to_contain_text("No change or maintenance")
    page.get_by_role("heading", name="Facts").click()
    expect(page.locator("#facts dt", has_text="Onset")).to_be_visible()
    expect(page.locator("[data-later]")).to_have_count(0)
    assert violations(page) == []
    assert console.problems == []


def test_details_stay_filled_when_the_page_changes(console: Console) -> None:
    number = content.report_finding()
    page = console.open(f"/incidents/{number}")
    expect(page.locator(".strip li.acknowledged")).to_have_count(0)
    expect(page.locator(".candidates .record")).to_contain_text("deepview")
    expect(page.locator(".live")).to_have_text("Live")
    commands.acknowledge(content.ticket_id(number), content.BOB)
    expect(page.locator(".strip li.acknowledged")).to_have_count(1)
    expect(page.locator(".candidates .record")).to_contain_text("deepview")


def test_a_row_of_change_appears_on_an_open_page_within_a_minute(console: Console) -> None:
    number = content.report_finding()
    incident = queries.get(str(number)).incident
    console.context.clock.install()
    page = console.open(f"/incidents/{number}")
    changes = page.locator("#fold-changes > summary")
    expect(changes).to_contain_text("none")
    row = {
        "time": (incident.opened_at - timedelta(minutes=5)).isoformat(),
        "region": incident.region,
        "change": "CHG-1",
        "kind": "deploy",
        "targets": [incident.component],
    }
    Door().post([row], kind="change")
    expect(changes).to_contain_text("none")
    page.clock.fast_forward(60_000)
    expect(changes).to_contain_text("1")


def test_details_that_do_not_load_are_said_and_asked_for_again(console: Console) -> None:
    page = console.open("/")
    page.route("**/details", lambda route: route.fulfill(status=503, body="busy", content_type="text/plain"))
    page.goto(f"{console.address}/incidents/{content.report_finding()}")
    failed = page.locator("#details-failed")
    expect(failed).to_be_visible()
    expect(page.locator(".strip li").first).to_be_visible()
    page.unroute("**/details")
    failed.get_by_role("button", name="Try again").press("Enter")
    expect(failed).to_be_hidden()
    expect(page.locator(".candidates .record")).to_contain_text("deepview")
    console.problems.clear()  # the browser logs the answer 503, as it should


def test_paper_has_every_folded_block(console: Console) -> None:
    number = content.report_finding()
    content.said_by(number, {"voting": str(content.verdict()["suspects"][0]["component"])}, pieces=3)
    for n in range(12):
        commands.comment(content.ticket_id(number), f"Comment {n}", content.BOB)
    page = console.open(f"/incidents/{number}")
    expect(page.locator("[data-later]")).to_have_count(0)
    expect(page.locator("#theories")).to_be_attached()
    expect(page.get_by_text("Comment 0", exact=True)).to_be_hidden()
    page.emulate_media(media="print")
    expect(page.get_by_text("Comment 0", exact=True)).to_be_visible()
    assert page.evaluate(FOLDED) == []
