"""Looks of a page at work: panels and dialogs open, a form refused, nothing found, no connection."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connections
from playwright.sync_api import BrowserContext, Page, Route, expect
from psycopg2.extensions import cursor as Cursor

from incidents import commands
from tests.browser import content
from tests.browser.conftest import Console
from tests.browser.looking import sticks_out, violations
from tests.browser.test_access import NARROWEST

PANELS = {"a": "assign", "h": "hand_over", "m": "more", "r": "resolve", "v": "set_severity", "z": "snooze"}


def keeps_nobody_out(page: Page) -> None:
    """In light and dark, on a phone, and at 200 % of 1280 pixels."""
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, "color-contrast") == []
    page.emulate_media(color_scheme="light")
    for width, height in ((NARROWEST, 740), (640, 400)):
        page.set_viewport_size({"width": width, "height": height})
        assert not sticks_out(page)
    page.set_viewport_size({"width": 1280, "height": 900})


@pytest.fixture
def elsewhere(console: Console) -> Iterator[BrowserContext]:
    """Alice's browser where what the browser complains about is expected: an error, a lost connection."""
    assert console.context.browser is not None
    context = console.context.browser.new_context(storage_state=console.context.storage_state())
    yield context
    context.close()


def test_the_panels_of_a_ticket_keep_nobody_out(console: Console) -> None:
    page = console.open(f"/incidents/{content.open_ticket('Worked on')}")
    for key, name in PANELS.items():
        page.keyboard.press(key)
        expect(page.locator(f"details[data-panel={name}] > .panel")).to_be_visible()
        keeps_nobody_out(page)
        page.keyboard.press("Escape")


def test_after_an_action_the_focus_is_where_it_was_begun(console: Console) -> None:
    page = console.open(f"/incidents/{content.open_ticket('Made worse')}")
    page.keyboard.press("v")
    page.locator("details[data-panel=set_severity] .panel").get_by_role("button").last.focus()
    page.keyboard.press("Enter")
    expect(page.locator("details[data-panel=set_severity] > summary")).to_be_focused()


@pytest.mark.parametrize("keys", ["?", "Control+k"])
def test_a_dialog_keeps_nobody_out(console: Console, keys: str) -> None:
    page = console.open("/")
    page.keyboard.press(keys)
    expect(page.locator("dialog[open]")).to_be_visible()
    keeps_nobody_out(page)


def test_a_form_that_is_refused_keeps_nobody_out(console: Console, elsewhere: BrowserContext) -> None:
    page = elsewhere.new_page()
    page.goto(f"{console.address}/silences")
    page.get_by_label("Matchers").fill("no matcher")
    page.get_by_label("Reason").fill("Planned work")
    page.get_by_role("button", name="Silence", exact=True).click()
    expect(page.locator("#new .problem").first).to_be_visible()
    keeps_nobody_out(page)


@pytest.mark.parametrize(
    "path", ["/?q=no+such+thing", "/no-such-page", "/?as_of=yesterday", "/incidents/999999"]
)
def test_what_is_not_there_keeps_nobody_out(console: Console, elsewhere: BrowserContext, path: str) -> None:
    page = elsewhere.new_page()
    page.goto(console.address + path)
    keeps_nobody_out(page)


def test_pages_come_back_with_the_database_and_what_was_typed(
    console: Console, elsewhere: BrowserContext, database: str, administrator: Cursor
) -> None:
    page, form, inbox = elsewhere.new_page(), elsewhere.new_page(), elsewhere.new_page()
    form.goto(f"{console.address}/silences")
    form.get_by_label("Matchers").fill('rack="being-recabled"')
    form.get_by_label("Reason").fill("New cables")
    inbox.goto(console.address)
    inbox.locator(".live[data-state=live]").wait_for()
    connections.close_all()
    administrator.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS false')
    try:
        ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
        administrator.execute(ended)
        page.goto(console.address)
        expect(page.get_by_role("heading")).to_have_text("Database unavailable")
        keeps_nobody_out(page)
        form.get_by_role("button", name="Silence", exact=True).click()
        expect(form.get_by_role("button", name="Send again")).to_be_visible()
        inbox.locator(".live[data-state=offline]").wait_for()
    finally:
        administrator.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS true')
    expect(page.locator("header.bar")).to_be_visible()
    form.get_by_role("button", name="Send again").click()
    # The database is all browser tests': whoever comes next finds no silence of this one's.
    form.get_by_role("button", name="End now: New cables").click()
    expect(form.get_by_role("region", name="Ended")).to_contain_text("New cables")


def test_a_page_that_a_busy_server_puts_off_asks_again_and_is_not_offline(console: Console) -> None:
    number = content.open_ticket("Gneiss fails", component="tor/dc1-t12")
    page = console.open(f"/incidents/{number}")
    page.locator(".live[data-state=live]").wait_for()
    states: list[object] = []
    page.expose_function("toldState", lambda state: states.append(state))
    page.evaluate(
        """new MutationObserver(() => toldState(document.querySelector(".live").dataset.state)).observe(
            document.querySelector(".live"), { attributes: true })"""
    )
    times = iter(range(2))

    def answer(route: Route) -> None:
        if next(times, None) is None:
            route.continue_()
        else:
            route.fulfill(status=503, headers={"Retry-After": "1", "Content-Type": "text/plain"}, body="Busy")

    page.route(f"**/incidents/{number}*", answer)
    commands.acknowledge(content.ticket_id(number), content.BOB)
    expect(page.locator("[data-part=actions]")).not_to_contain_text("Acknowledge e")
    assert (next(times, None), states) == (None, [])
    console.problems.clear()  # the browser logs the answers 503


def test_a_page_without_a_connection_keeps_nobody_out(console: Console, elsewhere: BrowserContext) -> None:
    page = elsewhere.new_page()
    page.goto(console.address)
    page.locator(".live[data-state=live]").wait_for()
    elsewhere.set_offline(True)
    page.locator(".live[data-state=offline]").wait_for(timeout=60_000)
    keeps_nobody_out(page)
