"""Tasks of an on-call night, each with the most keys and clicks that it may take.

What is typed into a field counts as one input. Seconds depend on the machine, inputs do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from playwright.sync_api import Locator, Page, Route, expect

from incidents import commands, queries
from incidents.escalation.models import EscalationPolicy
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
    expect(hand.page.locator("main")).to_be_focused()


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


# Forms
# ----------------------------------------------------------------------------------------------------------
def rotation(people: list[str]) -> dict[str, Any]:
    return {"name": "primary", "people": people, "turn": "1w", "start": "2026-01-05T09:00"}


def test_taking_over_on_call_takes_three_inputs_and_one_more_gives_it_back(console: Console) -> None:
    get_user_model().objects.get_or_create(username="bob")
    OnCallSchedule.objects.update_or_create(
        slug="marble", defaults={"name": "Marble shift", "layers": [rotation(["bob"])]}
    )
    hand = Hand(console.open("/on-call"))
    hand.click(hand.page.get_by_role("link", name="Take over: Marble shift"))
    hand.click(hand.page.get_by_label("Reason").first)
    hand.type("Bob is at the dentist")
    hand.press("Enter")
    expect(hand.page.get_by_text("alice is on call until")).to_be_visible()
    assert hand.inputs <= 4
    hand.click(hand.page.get_by_role("button", name="End: alice"))
    expect(hand.page.get_by_text("No overrides.")).to_be_visible()


def test_a_sender_with_its_test_alert_takes_five_inputs(console: Console) -> None:
    hand = Hand(console.open("/integrations"))
    hand.page.get_by_label("Source").select_option("Prometheus")
    hand.inputs += 1
    hand.click(hand.page.get_by_label("Name", exact=True))
    hand.type("prometheus-marble")
    hand.press("Enter")
    own = hand.page.get_by_role("region", name="prometheus-marble", exact=True)
    hand.click(own.get_by_role("button", name="Send a test alert"))
    expect(hand.page.get_by_role("heading", name="Delivery receipt")).to_be_visible()
    assert hand.inputs <= 5


def test_the_first_key_of_the_welcome_page_takes_two_clicks(console: Console) -> None:
    hand = Hand(console.open("/welcome?step=sender"))
    hand.click(hand.page.get_by_label("Any JSON or form"))
    hand.click(hand.page.get_by_role("button", name="Create key"))
    expect(hand.page.get_by_text("Waiting for the first alert from generic")).to_be_visible()
    assert hand.inputs <= 2


def test_an_escalation_policy_is_typed_with_the_keyboard_alone(console: Console) -> None:
    hand = Hand(console.open("/settings/policies"))
    hand.click(hand.page.get_by_label("Name", exact=True))
    for text in ("Marble on call", "marble"):
        hand.type(text)
        hand.press("Tab")
    hand.press("Tab")
    hand.type("at once: person alice\nafter 5 min: person bob")
    hand.press("Tab", "Tab", "Enter")
    expect(hand.page.get_by_role("heading", name="Marble on call")).to_be_visible()
    assert hand.inputs <= 10
    assert EscalationPolicy.objects.get(slug="marble").team is None


def test_a_schedule_is_made_of_its_names_and_people_alone(console: Console) -> None:
    hand = Hand(console.open("/settings/schedules/new"))
    hand.click(hand.page.get_by_label("Short name"))
    hand.type("granite")
    hand.press("Tab")
    hand.type("Granite shift")
    hand.click(hand.page.get_by_label("People, in rotation order").first)
    hand.type("alice, bob")
    hand.press("Enter")
    expect(hand.page.get_by_role("heading", name="Granite shift")).to_be_visible()
    assert hand.inputs <= 7
    (layer,) = OnCallSchedule.objects.get(slug="granite").layers
    assert (layer["people"], layer["turn"]) == (["alice", "bob"], "1w")


def test_the_report_of_this_week_takes_one_click(console: Console) -> None:
    content.open_ticket("Gabbro fails")
    hand = Hand(console.open("/reports"))
    hand.click(hand.page.locator("tr", has_text="Weekly").get_by_role("link", name="In progress"))
    hand.page.wait_for_url(re.compile(r"/reports/weekly-"))
    assert hand.inputs <= 1


def test_a_backtest_is_asked_for_by_two_clicks(console: Console) -> None:
    hand = Hand(console.open("/analyzers/deepview"))
    hand.click(hand.page.get_by_role("link", name="Backtest", exact=True))
    start = hand.page.get_by_label("From (")
    expect(start).not_to_have_value("")
    expect(hand.page.get_by_label("One window every")).not_to_have_value("")
    hand.click(hand.page.get_by_role("button", name="Start"))
    expect(hand.page.get_by_role("alert")).to_contain_text("telemetry")
    assert hand.inputs <= 2
    console.problems.clear()  # the browser logs the answer 400: there is no telemetry to judge


# Afterwards
# ----------------------------------------------------------------------------------------------------------
def test_what_helped_last_time_is_on_the_page_without_any_input(console: Console) -> None:
    before = content.open_ticket("Travertine fails", component="disk/travertine-1")
    commands.resolve(content.ticket_id(before), "disk/travertine-1", "replaced the cable", content.BOB)
    now = content.open_ticket("Travertine fails", component="disk/travertine-1")
    page = console.open(f"/incidents/{now}")
    expect(page.locator(".next")).to_contain_text(f"#{before}")
    expect(page.locator(".next")).to_contain_text("replaced the cable")


def test_the_list_is_exported_by_three_inputs_in_the_palette(console: Console) -> None:
    number = content.open_ticket("Onyx fails")
    hand = Hand(console.open("/?search=Onyx"))
    hand.press("Control+k")
    hand.type("export")
    expect(hand.page.get_by_role("option", name="Export incidents as CSV")).to_be_visible()
    with hand.page.expect_download() as started:
        hand.press("Enter")
    assert hand.inputs <= 3
    lines = Path(started.value.path()).read_text().splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [[str(number), "Onyx fails"]]


def test_a_review_is_drafted_and_exported_by_two_clicks(console: Console) -> None:
    number = content.open_ticket("Jasper fails")
    commands.resolve(content.ticket_id(number), "none", "", content.BOB)
    hand = Hand(console.open(f"/incidents/{number}/review"))
    hand.click(hand.page.get_by_role("button", name="Draft review"))
    with hand.page.expect_download() as started:
        hand.click(hand.page.get_by_role("link", name="Markdown", exact=True))
    assert hand.inputs <= 2
    assert f"incident {number}: Jasper fails" in Path(started.value.path()).read_text()
    printed = hand.page.pdf()
    assert printed.startswith(b"%PDF")


def test_whoever_acknowledges_second_is_told_in_words_who_was_first(console: Console) -> None:
    number = content.open_ticket("Opal fails")
    hand = Hand(console.open(f"/incidents/{number}"))
    content.without_updates(hand.page)
    commands.acknowledge(content.ticket_id(number), content.BOB)
    hand.press("e")
    expect(hand.page.get_by_role("alert").filter(has_text="Not done")).to_contain_text(
        "bob acknowledged the incident"
    )
    assert (hand.inputs, one(number).owner) == (1, "bob")
    console.problems.clear()  # the browser logs the answer 409


def focus(page: Page) -> str:
    """Words of what has the focus."""
    return str(page.evaluate("document.activeElement.innerText?.replace(/\\s+/g, ' ').trim().slice(0, 40)"))


def test_every_action_of_an_incident_is_done_and_undone_by_keyboard_and_the_focus_stays_at_the_actions(
    console: Console,
) -> None:
    number = content.open_ticket("Marble fails", component="tor/dc1-t12", severity="error")
    page = console.open(f"/incidents/{number}")
    page.set_viewport_size({"width": 390, "height": 844})
    hand, toast = Hand(page), page.locator(".toast")
    before = one(number).team

    hand.press("h")
    hand.type("stor")
    expect(page.locator("[data-panel=hand_over] input:checked")).to_have_value("storage")
    hand.press("Tab")
    hand.type("the disks time out")
    hand.press("Control+Enter")
    expect(toast.last).to_contain_text(f"Handed over #{number}")
    assert (one(number).team, focus(page)) == ("storage", "Hand over")
    hand.press("Control+z")
    expect(toast.last).to_contain_text("undone")
    assert (one(number).team, focus(page)) == (before, "Hand over")

    hand.press("z", "Tab")
    hand.type("parts are on their way")
    hand.press("Control+Enter")
    expect(toast.last).to_contain_text("Snoozed")
    assert (one(number).state, focus(page)) == ("snoozed", "Snooze")
    hand.press("Control+z")
    expect(toast.last).to_contain_text("ended")

    hand.press("v")
    hand.type("crit")
    hand.press("Control+Enter")
    expect(toast.last).to_contain_text("Severity set")
    assert (one(number).severity, focus(page)) == ("critical", "Severity")
    hand.press("Control+z")
    expect(toast.locator("button:not([data-dismiss])")).to_have_count(0)
    assert one(number).severity == "error"

    hand.press("r")
    hand.type("fal")
    hand.press("Control+Enter")
    expect(toast.last).to_contain_text("Resolved")
    assert (one(number).state, one(number).confirmed_cause) == ("resolved", "none")
    assert focus(page) == "Reopen"
    hand.press("Enter")
    expect(page.get_by_label("Reason for reopening")).to_be_focused()
    hand.press("Control+Enter")
    expect(toast.last).to_contain_text("Reopened")
    assert (one(number).state, focus(page)) == ("open", "Acknowledge e")
    hand.press("Control+z")
    expect(toast.last).to_contain_text("Resolved")
    assert (one(number).state, one(number).confirmed_cause) == ("resolved", "none")


def test_a_letter_in_an_open_panel_is_no_shortcut_and_words_beside_a_choice_choose_it(
    console: Console,
) -> None:
    number = content.open_ticket("Tuff fails", component="tor/dc1-t12")
    page = console.open(f"/incidents/{number}")
    page.keyboard.press("r")
    page.keyboard.type("fea")
    expect(page.locator("details.act[open]")).to_have_attribute("data-panel", "resolve")
    page.get_by_label("Other component").fill("firmware")
    expect(page.locator("[data-panel=resolve] input:checked")).to_have_value("other")
    assert one(number).state == "open"


def test_letters_of_one_panel_are_not_the_beginning_of_a_word_in_the_next(console: Console) -> None:
    number = content.open_ticket("Gneiss fails", component="tor/dc1-t12")
    page = console.open(f"/incidents/{number}")
    page.keyboard.press("v")
    page.keyboard.type("crit")
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    page.keyboard.type("fal")
    expect(page.locator("[data-panel=resolve] input:checked")).to_have_value("none")


def test_a_panel_that_was_opened_before_the_last_answer_came_keeps_what_is_typed(console: Console) -> None:
    number = content.open_ticket("Skarn fails", component="tor/dc1-t12")
    page = console.open(f"/incidents/{number}")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/acknowledge*", hold)
    page.keyboard.press("e")
    page.keyboard.press("z")
    page.keyboard.press("Tab")
    page.keyboard.type("wait")
    held.pop().continue_()
    expect(page.locator(".toast")).to_contain_text(f"Acknowledged #{number}")
    page.keyboard.type("ing")
    expect(page.get_by_label("Reason for the snooze")).to_have_value("waiting")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".toast").last).to_contain_text("Snoozed")
    assert one(number).state == "snoozed"
