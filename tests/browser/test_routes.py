"""The tree of routes, as people see it and change it."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Console


def test_a_rule_is_tried_and_then_made(console: Console) -> None:
    page = console.open("/settings/routes?component=disk/d7")
    expect(page.locator("#rule-disk")).to_have_class("matched")
    page.get_by_role("link", name="Add a rule", exact=True).click()
    page.get_by_label("Name").fill("lamps")
    page.get_by_label("Component", exact=True).fill("lamp/*")
    page.get_by_label("Team").select_option("compute")
    page.get_by_label("Auto-assign").select_option("yes")
    page.get_by_role("button", name="Preview changes").click()
    expect(page.locator("#replayed-title")).to_contain_text("no routing differences")
    expect(page.get_by_label("Component", exact=True)).to_have_value("lamp/*")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("#rule-lamps")).to_contain_text("to Compute")
    expect(page.locator("#rule-lamps")).to_contain_text("auto-assign")
