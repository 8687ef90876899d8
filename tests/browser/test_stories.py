"""The demo's stories from the finding to the resolved incident, with the keyboard alone and with the mouse alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from incidents import queries
from tests.browser import content
from tests.browser.conftest import Console


def row(page: Page, number: int) -> Locator:
    return page.locator(f'tr[data-id="{content.ticket_id(number)}"]')


def arrived(console: Console, story: str) -> tuple[Page, list[int]]:
    """The inbox of somebody who was looking when an analyzer's findings opened incidents, and their numbers."""
    content.open_ticket("Was there before", severity="critical")
    page = console.open("/")
    expect(page.locator(".live")).to_have_text("Live")
    numbers = content.report(content.told(story))
    causes = {queries.get(str(number)).incident.component for number in numbers}
    assert causes == {fault.component for fault in content.STORIES[story]}
    expect(page.locator(".arrivals button")).to_be_visible(timeout=20_000)
    return page, numbers


def read(page: Page, number: int, cause: str) -> None:
    """Grounds for a decision: the suspect, the evidence, and why it is with this team."""
    page.wait_for_url(f"**/incidents/{number}**")
    expect(page.locator(".candidates .own").filter(has_text=cause)).to_be_visible()
    expect(page.locator("[data-chart]").first).to_be_attached()
    expect(page.locator("details#why")).to_contain_text("matched")


def closed(number: int) -> tuple[str, str | None]:
    it = queries.get(str(number)).incident
    return it.state, it.confirmed_cause


@pytest.mark.parametrize("story", content.STORIES)
def test_from_the_finding_to_resolved_with_the_keyboard_alone(console: Console, story: str) -> None:
    page, numbers = arrived(console, story)
    press = page.keyboard.press
    for number in numbers:
        cause = str(queries.get(str(number)).incident.component)
        if number == numbers[0]:
            press("n")
            expect(row(page, number)).to_be_visible()
        press("/")
        page.keyboard.type(f"#{number}")
        press("Enter")
        page.wait_for_url("**search=**")
        expect(page.locator("tr[data-id]")).to_have_count(1)
        press("Escape")
        press("j")
        press("e")
        expect(row(page, number)).to_have_class(re.compile("acknowledged"))
        press("o")
        read(page, number, cause)
        press("w")
        expect(page.get_by_role("heading", name="This team", exact=True)).to_be_visible()
        press("c")
        page.keyboard.type("It is what the evidence says.")
        press("Control+Enter")
        expect(page.locator(".timeline .said").first).to_contain_text("what the evidence says")
        press("Escape")
        press("r")
        expect(page.get_by_role("radio", name=cause)).to_be_focused()
        press("Enter")
        expect(page.locator(".verdict .pill:not([data-failure])")).to_have_text("Resolved")
        assert closed(number) == ("resolved", cause)
        # A live update may show it before the answer closes the panel, and a letter there is for its choices.
        expect(page.locator("details.act[open]")).to_have_count(0)
        press("g")
        press("i")
        page.wait_for_url(f"{console.address}/")


@pytest.mark.parametrize("story", content.STORIES)
def test_from_the_finding_to_resolved_with_the_mouse_alone(console: Console, story: str) -> None:
    page, numbers = arrived(console, story)
    page.locator(".arrivals button").click()
    for number in numbers:
        cause = str(queries.get(str(number)).incident.component)
        row(page, number).locator("a.title").click()
        read(page, number, cause)
        page.get_by_text("Why this team, why this incident").click()
        expect(page.get_by_role("heading", name="This team", exact=True)).to_be_visible()
        page.get_by_role("button", name="Acknowledge", exact=False).first.click()
        expect(page.locator(".verdict .pill:not([data-failure])")).to_have_text("Acknowledged")
        page.locator("[data-panel=resolve] > summary").click()
        page.get_by_role("radio", name=cause).check()
        page.locator("[data-panel=resolve]").get_by_role("button", name="Resolve").click()
        expect(page.locator(".verdict .pill:not([data-failure])")).to_have_text("Resolved")
        assert closed(number) == ("resolved", cause)
        page.locator("nav[aria-label=Main]").get_by_role("link", name="Inbox", exact=True).click()
        expect(row(page, number)).to_have_count(0)
