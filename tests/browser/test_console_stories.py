"""From the alert to the resolved ticket, once with the keyboard alone and once with the mouse alone."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from incidents import queries
from tests.browser import content
from tests.browser.conftest import Console
from tests.browser.test_console_alerts import disk, send


def arrived(console: Console, rule: str) -> tuple[Page, int]:
    """The inbox of someone who was looking when an alert came in, and the number of its ticket."""
    content.open_ticket("Was there before", severity="critical")
    page = console.open("/")
    expect(page.locator(".live")).to_have_text("Live")
    send(disk(f"of-{rule}", rule))
    return page, queries.list_incidents(limit=1, order="newest").items[0].incident.number


def row(page: Page, number: int) -> Locator:
    return page.locator(f'tr[data-id="{content.ticket_id(number)}"]')


def test_from_the_alert_to_resolved_with_the_keyboard_alone(console: Console) -> None:
    page, number = arrived(console, "ByKeyboard")
    press = page.keyboard.press
    expect(page.get_by_role("button", name="new ticket")).to_be_visible(timeout=20_000)
    press("n")
    expect(row(page, number)).to_be_visible()
    press("/")
    page.keyboard.type("component:disk/of-ByKeyboard")
    press("Enter")
    expect(row(page, number)).to_be_visible()
    press("Escape")
    press("j")
    press("e")
    expect(row(page, number)).to_have_class(re.compile("acknowledged"))
    press("o")
    page.wait_for_url(f"**/incidents/{number}**")
    press("c")
    page.keyboard.type("The disk answers after 80 ms.")
    press("Control+Enter")
    expect(page.locator(".timeline .said").first).to_contain_text("80 ms")
    press("Escape")
    press("r")
    expect(page.get_by_role("radio", name="disk/of-ByKeyboard")).to_be_focused()
    press("Enter")
    expect(page.locator(".verdict .pill")).to_have_text("Resolved")
    press("g")
    press("i")
    page.wait_for_url(f"{console.address}/")
    assert queries.get(str(number)).incident.confirmed_cause == "disk/of-ByKeyboard"


def test_from_the_alert_to_resolved_with_the_mouse_alone(console: Console) -> None:
    page, number = arrived(console, "ByMouse")
    page.get_by_role("button", name="new ticket").click()
    row(page, number).locator("a.title").click()
    page.wait_for_url(f"**/incidents/{number}**")
    page.get_by_role("button", name="Acknowledge", exact=False).first.click()
    expect(page.locator(".verdict .pill")).to_have_text("Acknowledged")
    page.locator("[data-panel=resolve] > summary").click()
    page.get_by_role("radio", name="disk/of-ByMouse").check()
    page.locator("[data-panel=resolve]").get_by_role("button", name="Resolve").click()
    expect(page.locator(".verdict .pill")).to_have_text("Resolved")
    page.get_by_role("link", name="Inbox", exact=True).click()
    expect(row(page, number)).to_have_count(0)
    assert queries.get(str(number)).incident.confirmed_cause == "disk/of-ByMouse"
