"""Every page: axe finds nothing, in light and in dark; it fits a phone, has one heading, and no policy is broken."""

from __future__ import annotations

import pytest

from tests.browser import content
from tests.browser.conftest import Console
from tests.browser.looking import addresses, sticks_out, violations

NARROWEST = 360
OF_ACCOUNTS = ["/accounts/password/change/", "/accounts/2fa/"]


@pytest.mark.parametrize("path", [*addresses(), *OF_ACCOUNTS])
def test_a_page_keeps_nobody_out(console: Console, path: str) -> None:
    page = console.open(path)
    assert page.locator("h1").count() == 1
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, "color-contrast") == []
    page.set_viewport_size({"width": NARROWEST, "height": 800})
    assert not sticks_out(page)


def test_a_status_page_with_notices_keeps_nobody_out(console: Console) -> None:
    """The page that strangers see, and the form with a preview beside it."""
    slug, notice = content.publish_notices()
    for path in (f"/status/{slug}", f"/status_updates/{notice}", f"/settings/status_pages?edit={slug}"):
        page = console.open(path)
        assert page.locator("h1").count() == 1
        assert violations(page) == []
        page.emulate_media(color_scheme="dark")
        assert violations(page, "color-contrast") == []
        page.set_viewport_size({"width": NARROWEST, "height": 800})
        assert not sticks_out(page)
        page.set_viewport_size({"width": 1280, "height": 900})
        page.emulate_media(color_scheme="light")
    page = console.open(f"/status_updates/{notice}")
    page.get_by_label("Text", exact=True).first.fill("Seen on tor/dc1-t12.")
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("Internal names in the text").wait_for()
    assert violations(page) == []


def test_a_ticket_with_evidence_keeps_nobody_out(console: Console) -> None:
    number = content.report_finding()
    content.opinions_on(number)
    page = console.open(f"/incidents/{number}")
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, "color-contrast") == []
