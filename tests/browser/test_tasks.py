"""Tasks of an on-call night, each with the most keys and clicks that it may take.

What is typed into a field counts as one input. Seconds depend on the machine, inputs do not.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from playwright.sync_api import Locator, Page, expect

from incidents import commands, queries
from incidents.oncall.models import OnCallSchedule
from incidents.teams.models import Silence
from tests.browser import content
from tests.browser.conftest import Console
from tests.browser.looking import sticks_out, violations
from tests.browser.test_alerts import disk, send


class Hand:
    """Presses keys, clicks and types on a page, and counts."""

    def __init__(self, page: Page) -> None:
        self.page, self.inputs = page, 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self._did(lambda key=key: self.page.keyboard.press(key))  # type: ignore[misc]

    def type(self, text: str) -> None:
        self._did(lambda: self.page.keyboard.type(text))

    def click(self, what: Locator) -> None:
        self._did(what.click)

    def _did(self, act: Callable[[], object]) -> None:
        act()
        self.inputs += 1

    def choose(self, text: str, words: str, keys: str = "Control+k") -> None:
        """The palette's first offer for a text."""
        self.press(keys)
        self.type(text)
        offer = self.page.get_by_role("option", name=words).first
        expect(offer).to_have_attribute("aria-selected", "true")
        self.press("Enter")


def one(number: int) -> queries.Incident:
    return queries.get(str(number)).incident


def firing(name: str) -> int:
    """The number of an incident with one firing alert of that name."""
    send(disk(name.lower(), name))
    return queries.list_incidents(limit=1).items[0].incident.number


def row(number: int) -> str:
    return f"#t{number}"


def test_acknowledge_from_the_inbox_takes_two_keys_and_one_more_undoes_it(console: Console) -> None:
    number = content.open_ticket("Quartz fails", severity="critical")
    hand = Hand(console.open("/?search=Quartz"))
    hand.press("j", "e")
    expect(hand.page.locator(f"{row(number)}.acknowledged")).to_be_visible()
    assert hand.inputs <= 2
    hand.press("Control+z")
    expect(hand.page.locator(f"{row(number)}.open")).to_be_visible()
    assert (hand.inputs, one(number).owner) == (3, None)


def test_hand_over_from_the_inbox_takes_six_inputs_and_one_more_undoes_it(console: Console) -> None:
    number = content.open_ticket("Feldspar fails", component="tor/dc1-t12")
    hand = Hand(console.open("/?search=Feldspar"))
    before = one(number).team
    hand.press("j", "h")
    hand.type("Storage")
    hand.press("Tab")
    hand.type("the disks time out")
    hand.press("Control+Enter")
    expect(hand.page.locator(row(number))).to_contain_text("not accepted yet")
    assert hand.inputs <= 6
    hand.press("Control+z")
    expect(hand.page.locator(row(number))).not_to_contain_text("not accepted yet")
    assert one(number).team == before


def test_merge_two_takes_six_keys_and_merge_by_search_five_inputs(console: Console) -> None:
    older, newer = content.open_ticket("Mica fails"), content.open_ticket("Mica fails too")
    hand = Hand(console.open("/?search=Mica"))
    hand.press("j", "x", "j", "x", "m", "Enter")
    expect(hand.page.locator(".toast")).to_contain_text("Merged 1 incident")
    assert hand.inputs <= 6
    assert one(newer).merged_number == older
    hand.press("Control+z")
    expect(hand.page.locator(".toast").last).to_contain_text("Undone for 1 incident")
    assert one(newer).merged_into is None
    target = content.open_ticket("Gneiss below")
    hand = Hand(console.open("/?search=Mica"))
    hand.press("j", "m")
    hand.type("gneiss bel")
    expect(hand.page.get_by_role("option", name=f"#{target} Gneiss below")).to_be_visible()
    hand.press("Enter", "Enter")
    expect(hand.page.locator(".toast")).to_contain_text("Merged 1 incident")
    assert hand.inputs <= 5
    assert {one(older).merged_number, one(newer).merged_number} == {target, None}


def test_silence_for_two_hours_takes_four_inputs_shows_what_it_matches_and_is_undone(
    console: Console,
) -> None:
    number = firing("Basaltic")
    hand = Hand(console.open(f"/?search=%23{number}"))
    hand.press("j", "s")
    expect(hand.page.locator("[data-silence-preview]")).to_contain_text(
        "Matches 1 firing alert of 1 incident"
    )
    expect(hand.page.get_by_label("Reason for the silence")).to_be_focused()
    hand.type("planned work")
    hand.press("Enter")
    expect(hand.page.locator(row(number))).to_contain_text("Silenced")
    assert hand.inputs <= 4
    made = Silence.objects.latest("updated_at")
    assert timedelta(hours=1, minutes=59) < made.ends_at - made.starts_at <= timedelta(hours=2)
    hand.press("Control+z")
    expect(hand.page.locator(row(number))).not_to_contain_text("Silenced")
    made.refresh_from_db()
    assert made.ends_at <= datetime.now(UTC)


def test_who_is_on_call_is_answered_in_the_palette(console: Console) -> None:
    OnCallSchedule.objects.update_or_create(
        slug="night",
        defaults={
            "name": "Night shift",
            "layers": [{"name": "primary", "people": ["bob"], "turn": "1w", "start": "2026-01-05T09:00"}],
        },
    )
    hand = Hand(console.open("/"))
    hand.press("Control+k")
    hand.type("who is on call")
    expect(hand.page.get_by_role("option", name="Night shift: bob")).to_be_visible()
    assert hand.inputs <= 2
    hand.press("Escape")
    expect(hand.page.locator("dialog#palette")).to_be_hidden()
    hand.press("g", "o")
    hand.page.wait_for_url("**/on-call")


def test_an_incident_is_acknowledged_and_handed_over_by_its_number_from_any_page(console: Console) -> None:
    number = content.open_ticket("Slate fails")
    hand = Hand(console.open("/on-call"))
    hand.choose(f"ack {number}", f"Acknowledge #{number} Slate fails")
    expect(hand.page.locator(".toast")).to_contain_text(f"Acknowledged #{number}")
    assert hand.inputs <= 3
    assert one(number).state == "acknowledged"
    hand.choose(f"hand over #{number}", f"Hand over #{number} Slate fails")
    expect(hand.page.locator("details[data-panel=hand_over] > .panel")).to_be_visible()
    assert hand.inputs <= 6


def test_the_palette_takes_slips_goes_dark_and_remembers_places(console: Console) -> None:
    page = console.open("/")
    hand = Hand(page)
    hand.choose("drak", "Dark theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    hand.choose("system the", "System theme")
    hand.choose("go to anlayzers", "Analyzers")
    page.wait_for_url("**/analyzers")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("group", name="Recent").get_by_role("option", name="Analyzers")).to_be_visible()
    assert hand.inputs <= 9


def test_the_palette_on_an_incident_acts_on_that_incident(console: Console) -> None:
    number = content.open_ticket("Schist fails")
    hand = Hand(console.open(f"/incidents/{number}"))
    hand.choose("ack", "Acknowledge")
    expect(hand.page.get_by_role("button", name="Unacknowledge")).to_be_visible()
    assert (hand.inputs, one(number).state) == (3, "acknowledged")


def test_the_palette_works_on_a_phone(console: Console) -> None:
    page = console.open("/")
    page.set_viewport_size({"width": 390, "height": 844})
    hand = Hand(page)
    hand.click(page.get_by_role("button", name="Go to…"))
    hand.type("new sil")
    hand.click(page.get_by_role("option", name="New silence"))
    page.wait_for_url("**/silences#new")
    assert hand.inputs <= 3


def test_my_incidents_and_groups_are_one_command_away_and_fold_by_keyboard(console: Console) -> None:
    mine = content.open_ticket("Marl fails", component="disk/marl-1")
    content.open_ticket("Marl fails too", component="disk/marl-1")
    hand = Hand(console.open(f"/incidents/{mine}"))
    hand.press("e")
    expect(hand.page.get_by_role("button", name="Unacknowledge")).to_be_visible()
    hand.choose("mine", "My incidents")
    hand.page.wait_for_url("**/?tab=mine")
    expect(hand.page.locator(row(mine))).to_be_visible()
    assert hand.inputs <= 4
    page = console.open("/?search=Marl&group=component")
    group = page.get_by_role("button", name="disk/marl-1 2")
    expect(group).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("j")
    page.keyboard.press("ArrowLeft")
    expect(group).to_be_focused()
    expect(page.locator(row(mine))).to_be_hidden()
    page.reload()
    expect(group).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("j")
    page.keyboard.press("ArrowRight")
    expect(page.locator(row(mine))).to_be_visible()


def test_the_inbox_of_ten_minutes_ago_takes_four_inputs(console: Console) -> None:
    content.open_ticket("Loam fails")
    hand = Hand(console.open("/"))
    hand.click(hand.page.get_by_text("As of…"))
    hand.page.get_by_label("Time (").fill(
        (datetime.now(UTC) - timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M")
    )
    hand.inputs += 1
    hand.click(hand.page.get_by_role("button", name="View"))
    expect(hand.page.get_by_role("link", name="Return to now").first).to_be_visible()
    assert hand.inputs <= 4


def test_why_and_who_is_hurt_take_one_key_from_the_row(console: Console) -> None:
    number = content.report_finding()
    hand = Hand(console.open(f"/?search=%23{number}"))
    hand.press("j", "Enter")
    expect(hand.page.get_by_role("heading", name="Cause")).to_be_in_viewport()
    expect(hand.page.get_by_role("heading", name="Affected")).to_be_in_viewport()
    assert hand.inputs <= 2


def test_what_changed_since_an_event_takes_one_click_on_the_timeline(console: Console) -> None:
    number = content.open_ticket("Chert fails", severity="error")
    page = console.open(f"/incidents/{number}")
    commands.set_severity(content.ticket_id(number), "critical", content.BOB)
    hand = Hand(page)
    hand.click(page.locator(".timeline .at a", has_text="since").last)
    expect(page.get_by_role("row", name="severity error critical")).to_be_visible()
    assert hand.inputs <= 1
    assert violations(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert not sticks_out(page)
