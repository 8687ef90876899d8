"""An incident goes the wrong way, is bounced, snoozed and merged, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from incidents import commands, queries
from tests.browser import content
from tests.browser.conftest import Console


def test_what_was_handed_over_is_bounced_by_keyboard_with_a_reason(console: Console) -> None:
    number = content.open_ticket("Bounced", component="tor/dc1-t12")
    commands.hand_over(content.ticket_id(number), "storage", "the disks time out", content.BOB)
    page = console.open(f"/incidents/{number}")
    expect(page.locator(".handed")).to_contain_text("the disks time out")
    page.keyboard.press("b")
    page.get_by_label("Reason for the rejection").fill("The disks answer in 2 ms.")
    page.locator("[data-panel=bounce]").get_by_role("button", name="Reject").click()
    expect(page.get_by_role("region", name="Timeline")).to_contain_text(
        "rejected the hand-over from storage to network"
    )
    expect(page.locator(".facts-card")).to_contain_text("1 of them rejected")


def test_what_was_handed_over_is_accepted_by_keyboard(console: Console) -> None:
    number = content.open_ticket("Accepted", component="tor/dc1-t12")
    commands.hand_over(content.ticket_id(number), "storage", "the disks time out", content.BOB)
    page = console.open(f"/incidents/{number}")
    page.keyboard.press("y")
    expect(page.get_by_role("region", name="Timeline")).to_contain_text(
        "alice accepted the incident for storage"
    )


def test_a_ticket_is_snoozed_by_keyboard_and_woken(console: Console) -> None:
    number = content.open_ticket("Snoozed")
    page = console.open(f"/incidents/{number}")
    page.keyboard.press("z")
    page.get_by_label("Until a new alert or finding").check()
    page.locator("[data-panel=snooze]").get_by_role("button", name="Snooze").click()
    expect(page.locator(".verdict .pill:not([data-failure])")).to_have_text("Snoozed")
    page.get_by_role("button", name="Wake").click()
    expect(page.locator(".verdict .pill:not([data-failure])")).to_have_text("Open")


def test_a_ticket_is_merged_and_the_merge_is_undone(console: Console) -> None:
    target, source = content.open_ticket("Rack 12"), content.open_ticket("Row 12")
    page = console.open(f"/incidents/{source}")
    page.keyboard.press("m")
    page.get_by_label("Merge into incident").fill(str(target))
    page.locator(
        "#into-found [role=option]"
    ).first.wait_for()  # offers that close while the button is pressed must not move it
    page.get_by_role("button", name="Merge", exact=True).click(delay=400)
    expect(page.locator(".verdict .pill:not([data-failure])")).to_have_text("Merged")
    toast = page.locator(".toast").filter(has_text=f"Merged #{source}")
    toast.get_by_role("button", name="Undo").click()
    expect(page.locator(".verdict .pill:not([data-failure])")).to_have_text("Open")
    assert queries.get(str(source)).incident.merged_into is None


def test_whoever_is_too_late_sees_who_was_faster_and_may_try_again(console: Console) -> None:
    number = content.open_ticket("Too late", component="tor/dc1-t12")
    page = console.open(f"/incidents/{number}")
    content.without_updates(page)
    page.keyboard.press("h")
    page.get_by_role("radio", name="Storage").check()
    page.get_by_label("Reason for the hand-over").fill("The disks time out.")
    commands.acknowledge(content.ticket_id(number), content.BOB)
    panel = page.locator("[data-panel=hand_over]")
    panel.get_by_role("button", name="Hand over").click()
    expect(panel.get_by_role("alert")).to_contain_text("bob acknowledged the incident")
    expect(page.get_by_label("Reason for the hand-over")).to_have_value("The disks time out.")
    panel.get_by_role("button", name="Hand over").click()
    expect(page.get_by_role("region", name="Timeline")).to_contain_text("alice handed the incident over")
    console.problems.clear()  # the browser logs the answer 409 and the aborted request, as it should


@pytest.mark.parametrize("width", [390, 1280])
def test_no_action_of_a_ticket_is_wider_than_the_screen(console: Console, width: int) -> None:
    number = content.open_ticket("Narrow", component="tor/dc1-t12")
    commands.hand_over(content.ticket_id(number), "storage", "the disks time out", content.BOB)
    page = console.open(f"/incidents/{number}")
    page.set_viewport_size({"width": width, "height": 844})
    for key in ("b", "h", "z", "m"):
        page.keyboard.press(key)
        panel = page.locator("details.act[open] > .panel")
        box = panel.bounding_box()
        assert box is not None
        assert (box["x"] >= 0, box["x"] + box["width"] <= width) == (True, True)
        page.keyboard.press("Escape")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
