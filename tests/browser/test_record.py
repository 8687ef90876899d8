"""The record of an analyzer, in a real browser."""

from __future__ import annotations

from playwright.sync_api import expect

from incidents import commands, queries
from incidents.follower import follower
from incidents.scorecards.queries import scorecard
from tests.browser import content
from tests.browser.conftest import Console
from tests.browser.looking import sticks_out
from tests.following import follow_to_the_end


def test_a_resolution_is_on_the_record_of_its_analyzer(console: Console) -> None:
    follow_to_the_end(follower())
    before, number = scorecard("deepview"), content.report_finding()
    cause = queries.get(str(number)).incident.component
    commands.resolve(content.ticket_id(number), str(cause), "", content.ALICE)
    follow_to_the_end(follower())
    page = console.open("/analyzers/deepview")
    expect(page.get_by_label("Record of deepview")).to_contain_text(
        f"Right{before.right + 1} of {before.resolved + 1}"
    )
    page.set_viewport_size({"width": 390, "height": 844})
    assert not sticks_out(page)
