"""What several analyzers say, and how right they were, in a real browser."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser import content
from tests.browser.conftest import Console
from tests.browser.looking import sticks_out


def test_a_ticket_shows_who_agrees_and_who_does_not(console: Console) -> None:
    number = content.report_finding()
    content.opinions_on(number)
    page = console.open(f"/incidents/{number}")
    said = page.get_by_role("region", name="What the analyzers say").get_by_role("listitem")
    expect(said).to_have_count(4)
    expect(said.nth(1)).to_contain_text("voting")
    expect(page.get_by_role("heading", level=1)).to_contain_text("as deepview and voting agree")
    page.set_viewport_size({"width": 390, "height": 844})
    assert not sticks_out(page)
