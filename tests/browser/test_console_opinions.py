"""What several analyzers say, and how right they were, in a real browser."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from incidents import commands, queries
from incidents.reactors import follower
from ingest.commands import run_follower_once
from tests.browser import content
from tests.browser.conftest import Console


def sticks_out(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


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


def test_a_resolution_is_on_the_record_of_its_analyzer(console: Console) -> None:
    number = content.report_finding()
    cause = queries.get(str(number)).incident.component
    commands.resolve(content.ticket_id(number), str(cause), "", content.ALICE)
    run_follower_once(follower())
    page = console.open("/analyzers")
    expect(page.get_by_label("Record of deepview")).to_contain_text("Right1 of 1")
    page.set_viewport_size({"width": 390, "height": 844})
    assert not sticks_out(page)
