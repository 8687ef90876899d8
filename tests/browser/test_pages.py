"""Every page in a real browser: nothing is refused by the policy, nothing sticks out, charts are drawn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from analyzers.queries import runs
from incidents import commands
from incidents.reports.periods import period_of
from tests.browser import content
from tests.browser.conftest import Console
from tests.browser.looking import sticks_out, violations


def draw_all(page: Page) -> None:
    for chart in page.locator("[data-chart]:visible").all():
        chart.scroll_into_view_if_needed()
        expect(chart.locator(".chart svg")).to_be_visible(timeout=30_000)


def test_evidence_is_drawn_under_the_strict_policy_in_light_and_dark(console: Console) -> None:
    page = console.open(f"/incidents/{content.report_finding()}")
    draw_all(page)
    page.emulate_media(color_scheme="dark")
    draw_all(page)
    page.locator(".chart svg").first.hover()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 21, 24)"


def test_a_ticket_with_evidence_fits_a_phone(console: Console) -> None:
    page = console.open("/")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{console.address}/incidents/{content.report_finding()}")
    draw_all(page)
    assert not sticks_out(page)


def test_a_page_its_charts_and_its_slider_say_times_by_the_clock_of_the_browser(console: Console) -> None:
    assert console.context.browser is not None
    abroad = console.context.browser.new_context(
        timezone_id="America/New_York", storage_state=console.context.storage_state()
    )
    page = console.watched(abroad.new_page())
    page.goto(f"{console.address}/incidents/{content.report_finding()}")
    expect(page.locator(".timeline .at").first).to_contain_text("UTC-5")
    expect(page.locator("[data-travel] output")).to_contain_text("UTC-5")
    page.locator("[data-chart]").first.scroll_into_view_if_needed()
    page.locator(".chart svg path[aria-roledescription]").first.hover(force=True, timeout=10_000)
    expect(page.locator("#vg-tooltip-element")).to_be_visible()
    shown = page.locator("#vg-tooltip-element tr").all_inner_texts()
    bars = next(piece["chart"]["data"]["values"] for piece in content.verdict()["evidence"] if piece["chart"])
    there = [datetime.fromisoformat(one["time"]).astimezone(ZoneInfo("America/New_York")) for one in bars]
    hours = {one: (one.utcoffset() or timedelta(0)) // timedelta(hours=1) for one in there}
    times = {f"time\t{one:%Y-%m-%d %H:%M} UTC{behind:+d}" for one, behind in hours.items()}
    assert times & set(shown)
    abroad.close()


def test_charts_that_nobody_scrolled_to_are_drawn_and_printed_in_light_colours(console: Console) -> None:
    page = console.open(f"/incidents/{content.report_finding()}")
    page.emulate_media(color_scheme="dark")
    last = page.locator("[data-chart]:visible").last
    expect(last.locator(".chart svg")).to_be_attached(timeout=10_000)
    assert page.evaluate("scrollY") == 0
    before = last.locator(".chart svg text").first.get_attribute("fill")
    page.emulate_media(media="print", color_scheme="dark")
    expect(last.locator(".chart svg text").first).not_to_have_attribute("fill", str(before))
    page.set_viewport_size({"width": 718, "height": 1047})  # A4 within margins of a centimetre
    assert not sticks_out(page)


def test_a_report_with_its_chart_fits_a_phone(console: Console) -> None:
    content.open_ticket("Reported")
    page = console.open(f"/reports/weekly-{period_of('weekly', datetime.now(UTC).date(), 'UTC').name}")
    page.set_viewport_size({"width": 390, "height": 844})
    draw_all(page)
    assert not sticks_out(page)


def test_a_report_is_subscribed_to_and_left_on_its_page(console: Console) -> None:
    page = console.open(f"/reports/daily-{datetime.now(UTC).date()}")
    page.get_by_label("E-mail address").fill("alice@example.com")
    page.get_by_role("button", name="Subscribe").click()
    expect(page.get_by_role("status")).to_contain_text("alice@example.com now receives this report")
    page.get_by_role("button", name="Unsubscribe").click()
    expect(page.get_by_text("No subscribers of")).to_be_visible()


def test_a_run_shows_its_verdict_and_evidence(console: Console) -> None:
    content.report_finding()
    newest = runs().first()
    assert newest is not None
    page = console.open(f"/runs/{newest.id}")
    draw_all(page)
    expect(page.locator("h1")).to_contain_text(content.verdict()["suspects"][0]["component"])


def test_a_past_moment_is_marked_and_cannot_be_changed(console: Console) -> None:
    number = content.open_ticket("Looked back at")
    before = datetime.now(UTC)
    time.sleep(0.02)
    commands.acknowledge(content.ticket_id(number), content.BOB)
    page = console.open(f"/incidents/{number}?as_of={before.isoformat().replace('+00:00', 'Z')}")
    expect(page.get_by_role("note")).to_contain_text("State at")
    expect(page.locator(".verdict .pill:not([data-failure])")).to_have_text("Open")
    assert page.locator("main form").count() == 0


def test_a_chosen_theme_stays_and_does_not_flash(console: Console) -> None:
    page = console.open("/docs")
    page.locator("[data-theme-toggle]").click()
    page.locator("[data-theme-toggle]").click()
    page.reload(wait_until="commit")
    page.wait_for_selector("body", state="attached")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.evaluate("localStorage.clear()")


@pytest.fixture
def ten_thousand(console: Console) -> Iterator[None]:  # noqa: ARG001
    content.fill_inbox(10_000)
    yield
    content.empty_inbox_again()


@pytest.mark.usefixtures("ten_thousand")
def test_ten_thousand_tickets_come_fifty_at_a_time(console: Console) -> None:
    page = console.open("/")
    page.goto(f"{console.address}/?severity=warning")
    expect(page.locator("tr[data-id]")).to_have_count(50)
    page.locator("#pager").scroll_into_view_if_needed()
    expect(page.locator("tr[data-id]")).to_have_count(100)
    ids = page.locator("tr[data-id]").evaluate_all("rows => rows.map(row => row.dataset.id)")
    assert len(set(ids)) == 100
    page.goto(page.get_by_role("link", name="Next").evaluate("link => link.href"))
    expect(page.get_by_role("link", name="Previous")).to_be_visible()


def test_a_slider_changes_the_answer_and_the_address_without_leaving_the_page(console: Console) -> None:
    page = console.open("/reports/what-if/tor-availability")
    shown = page.locator("#answer .shown")
    expect(shown).to_have_text("99.99993 %")
    page.get_by_label("Devices that go out in a month, slider").press("End")
    expect(shown).to_have_text("99.93 %")
    assert "rebooted=100&" in page.url
    page.get_by_label("A reboot takes", exact=True).fill("soon")
    expect(page.locator("#answer .problem")).to_contain_text("must be a number from 0 to 43,200")
    page.get_by_role("link", name="Reset to example").click()
    expect(shown).to_have_text("99.99993 %")
    assert "?" not in page.url
    assert violations(page) == []
