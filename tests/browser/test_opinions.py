"""The page of an incident: its analyzers, its moments, whose it is; in a real browser."""

from __future__ import annotations

from playwright.sync_api import expect

from incidents import commands, queries
from incidents.questions.commands import answer
from incidents.questions.queries import questions_of
from ingest.queries import now_utc
from tests.browser import content
from tests.browser.conftest import Console
from tests.browser.looking import sticks_out, violations
from tests.browser.test_alerts import pictured


def test_a_ticket_shows_who_agrees_and_who_does_not(console: Console) -> None:
    number = content.report_finding()
    content.opinions_on(number)
    page = console.open(f"/incidents/{number}")
    page.get_by_text("Statistics and analyzer verdicts").click()
    said = page.get_by_role("region", name="Analyzer verdicts").get_by_role("listitem")
    expect(said).to_have_count(4)
    expect(said.nth(1)).to_contain_text("voting")
    expect(page.get_by_role("heading", level=1)).to_contain_text("as deepview and voting agree")
    page.set_viewport_size({"width": 390, "height": 844})
    assert not sticks_out(page)


def test_questions_follow_an_answer_and_leave_a_note_that_is_being_typed(console: Console) -> None:
    judged = content.verdict()
    first = {**judged["suspects"][0], "ambiguous_with": ["tor/x-1", "tor/x-2", "tor/x-3"], "score": 0.9}
    (number,) = content.report({**judged, "suspects": [first]})
    page = console.open(f"/incidents/{number}")
    page.locator("#fold-questions > summary").click()
    block, timeline = page.locator("#questions"), page.get_by_text("answered “Drain")
    expect(block.locator("[data-question]").first).to_be_visible()
    expect(block.locator("[data-answers]")).to_have_count(0)
    asked = [one.question for one in questions_of(queries.get(str(number)).incident, now_utc()).listed]
    answer(content.ticket_id(number), asked[0].id, "positive", "bob", content.BOB)
    expect(block.locator("[data-answers] li")).to_have_count(1)
    expect(block.locator("[data-answers]")).to_contain_text("→")
    note = block.get_by_label("Note").first
    note.fill("measured at ten")
    answer(content.ticket_id(number), asked[1].id, "negative", "bob", content.BOB)
    expect(timeline).to_have_count(2)
    page.wait_for_load_state("networkidle")
    expect(note).to_have_value("measured at ten")
    assert console.problems == []


def test_questions_appear_when_another_analyzer_disagrees_later(console: Console) -> None:
    number = content.report_finding()
    page = console.open(f"/incidents/{number}")
    expect(page.locator("#fold-questions")).to_have_count(0)
    content.said_by(number, {"netbouncer": content.OTHER}, pieces=1)
    expect(page.locator("[data-part=measure]")).to_contain_text("bits in")
    page.locator("#fold-questions > summary").click()
    expect(page.locator("#questions [data-question]").first).to_be_visible()
    assert violations(page) == []
    assert console.problems == []


def test_a_slider_goes_through_the_moments_of_a_ticket_by_keyboard(console: Console) -> None:
    number = content.open_ticket("Fans of rack 9 are loud")
    commands.acknowledge(content.ticket_id(number), content.BOB)
    page = console.open(f"/incidents/{number}")
    page.locator("summary", has_text="History").click()
    slider, state = page.get_by_role("slider"), page.locator(".verdict .pill:not([data-failure])")
    slider.press("Home")
    expect(page.get_by_role("note")).to_contain_text("State at", timeout=10_000)
    expect(state).to_have_text("Open")
    expect(slider).to_be_focused()
    assert "as_of=" in page.url
    slider.press("End")
    expect(page.get_by_role("note")).to_have_count(0, timeout=10_000)
    expect(state).to_have_text("Acknowledged")
    assert "as_of=" not in page.url


def test_a_chart_is_saved_as_a_picture_and_the_hand_over_keeps_nobody_out(console: Console) -> None:
    page = console.open(f"/incidents/{content.report_finding()}")
    page.locator("summary", has_text="Hand over").click()
    expect(page.locator("[data-teams]")).to_contain_text("probably not")
    assert violations(page) == []
    page.keyboard.press("Escape")
    figure = page.locator("figure:has([data-chart])").first
    figure.scroll_into_view_if_needed()
    expect(figure.locator(".chart svg")).to_be_visible(timeout=30_000)
    with page.expect_download() as saved:
        figure.get_by_role("button", name="SVG").click()
    assert saved.value.path().read_text().startswith("<svg")


def test_a_review_is_drafted_gets_an_action_and_fits_a_phone(console: Console) -> None:
    number = content.report_finding()
    commands.acknowledge(content.ticket_id(number), content.BOB)
    page = console.open(f"/incidents/{number}/review")
    page.get_by_role("button", name="Draft review").press("Enter")
    expect(page.get_by_role("heading", name="Who was called")).to_be_visible()
    page.get_by_label("New action").fill("Alert on failing disks earlier")
    page.get_by_label("Owner").fill("alice")
    page.get_by_label("Due").fill("2020-02-03")
    page.get_by_label("Due").press("Enter")
    expect(page.get_by_text("overdue since 2020-02-03")).to_be_visible()
    assert violations(page) == []
    pictured(page, "review")
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    assert violations(page, "color-contrast") == []
    assert not sticks_out(page)
    page.get_by_role("button", name="Done: Alert on failing disks earlier").click()
    expect(page.get_by_role("button", name="Reopen: Alert on failing disks earlier")).to_be_visible()
    assert console.problems == []
